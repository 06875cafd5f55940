package webhooks

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// SetTimeout replaces the time limit of an attempt, for tests whose receivers never answer, and returns the one that it had.
func (c *Client) SetTimeout(timeout time.Duration) (before time.Duration) {
	before, c.http.Timeout = c.http.Timeout, timeout
	return before
}

// NewSlots makes the slots of requests in flight.
var NewSlots = newSlots

// LeaseCapacity is what a process that has leased so many healthy endpoints, for so long, may lease besides, and how many it hands back.
func LeaseCapacity(leased int, since time.Duration) (healthy LeaseRoom, yielded int) {
	d := New(Config{})
	now := time.Now()
	for n := range leased {
		r := &runner{started: now.Add(-since - time.Duration(n)*time.Microsecond)}
		r.stop = sync.OnceFunc(func() { yielded++ })
		d.runners[uuid.New()] = r
	}
	healthy, _ = d.leaseCapacity()
	_, _ = d.leaseCapacity() // the same ones again
	return healthy, yielded
}
