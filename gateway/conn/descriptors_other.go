//go:build !linux && !darwin

package conn

import "math"

// OpenFileLimit returns no limit: it is unknown on this system.
func OpenFileLimit() int { return math.MaxInt32 }
