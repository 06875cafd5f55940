//go:build !linux && !darwin

package edge

import "math"

// openFileLimit is unknown here.
func openFileLimit() int { return math.MaxInt32 }
