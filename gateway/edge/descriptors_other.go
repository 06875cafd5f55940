//go:build !linux && !darwin

package edge

import "math"

// openFileLimit returns no limit: it is unknown on this system.
func openFileLimit() int { return math.MaxInt32 }
