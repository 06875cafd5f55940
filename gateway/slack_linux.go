package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// timerSlack is by how much later than asked the kernel may wake a thread.
	timerSlack = time.Millisecond
	// slackTried stands in the environment of a program that has been begun anew: once is enough.
	slackTried = "TIMER_SLACK_TRIED"
)

// relaxTimers begins the program anew with a timer slack of a millisecond, and returns there, or with the error for which it
// could not. The runtime's monitor sleeps for 20 µs at a time while anything runs, so that Linux wakes it thousands of times
// a second beside the thread that does the work: with one processor more than a tenth of all the gateway's time. Nothing here
// waits for less than milliseconds. Threads have the slack of those that made them, and the monitor is older than main,
// hence the new beginning, which keeps the slack of the thread that makes it and the process's id (prctl(2),
// PR_SET_TIMERSLACK).
func relaxTimers() error {
	if os.Getenv(slackTried) != "" {
		return os.Unsetenv(slackTried)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("relax timers: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil {
		return fmt.Errorf("relax timers: %w", err)
	}
	return fmt.Errorf("relax timers: begin anew: %w", syscall.Exec(self, os.Args, append(os.Environ(), slackTried+"=1")))
}
