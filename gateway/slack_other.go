//go:build !linux

package main

import (
	"errors"
	"time"
)

// setTimerSlack fails: only Linux has a timer slack.
func setTimerSlack(time.Duration) error { return errors.New("set the timer slack: this is not Linux") }
