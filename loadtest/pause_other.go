//go:build !linux

package main

import "time"

// pause sleeps by Go's timers, which may fire a millisecond late.
func pause(d time.Duration) { time.Sleep(d) }
