package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reexecuted is the environment variable that stops the re-executed program from executing itself again.
const reexecuted = "TIMER_SLACK_TRIED"

// setTimerSlack re-executes the program with this timer slack. It returns nil in the new program, or an error in the old one.
//
// The runtime's monitor thread sleeps 20 µs at a time while any goroutine runs, so Linux wakes it thousands of times a second.
// A thread inherits the timer slack of the thread that creates it, and the monitor exists before main runs; but execve keeps
// the slack of its caller (prctl(2), PR_SET_TIMERSLACK).
func setTimerSlack(slack time.Duration) error {
	if os.Getenv(reexecuted) != "" {
		return os.Unsetenv(reexecuted)
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
	return fmt.Errorf("set the timer slack: re-execute: %w", syscall.Exec(self, os.Args, append(os.Environ(), reexecuted+"=1")))
}
