package main

import (
	"syscall"
	"time"
)

// pause sleeps by nanosleep, which a signal ends early. Go's timers fire up to a millisecond late in an idle program, which is
// longer than the measured times.
func pause(d time.Duration) {
	wait := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&wait, nil)
}
