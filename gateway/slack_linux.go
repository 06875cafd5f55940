package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slackTried is in the environment of a program that has been executed anew, so that it is done once.
const slackTried = "TIMER_SLACK_TRIED"

// setTimerSlack executes the program anew with this timer slack. It returns in the new program, or with the error for which
// there is none.
//
// The runtime's monitor thread sleeps for 20 µs at a time while anything runs, so that Linux wakes it thousands of times a second
// beside the thread that works. A thread inherits its slack from the thread that creates it, and the monitor exists before main
// runs. Execution keeps the slack of the thread that calls it (prctl(2), PR_SET_TIMERSLACK).
func setTimerSlack(slack time.Duration) error {
	if os.Getenv(slackTried) != "" {
		return os.Unsetenv(slackTried)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("set the timer slack: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil { //nolint:gosec // at most milliseconds
		return fmt.Errorf("set the timer slack: %w", err)
	}
	return fmt.Errorf("set the timer slack: execute anew: %w", syscall.Exec(self, os.Args, append(os.Environ(), slackTried+"=1")))
}
