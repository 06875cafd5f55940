//go:build !linux

package main

import "time"

// pause waits by Go's timers, which may come a millisecond late.
func pause(d time.Duration) { time.Sleep(d) }
