//go:build linux || darwin

package conn

import (
	"math"
	"syscall"
)

// OpenFileLimit returns the limit of open files. Go has already raised the soft limit to the hard limit.
func OpenFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
