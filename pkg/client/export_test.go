package client

import (
	"context"
	"time"
)

// SetClock replaces the clock, the random number and the pause between tries.
func (c *Client) SetClock(now time.Time, random float64, sleep func(context.Context, time.Duration) error) {
	c.now, c.random, c.sleep = func() time.Time { return now }, func() float64 { return random }, sleep
}

// ParseRetryAfter reads a Retry-After.
var ParseRetryAfter = parseRetryAfter
