package main

import (
	"syscall"
	"time"
)

// pause waits by the kernel's own clock. Go's timers come a millisecond late in an idle program, which is longer than what
// is measured here. A signal ends it early.
func pause(d time.Duration) {
	wait := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&wait, nil)
}
