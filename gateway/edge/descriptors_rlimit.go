//go:build linux || darwin

package edge

import (
	"math"
	"syscall"
)

// openFileLimit is how many files this process may have open; Go has raised it as far as it may be.
func openFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
