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

// Slots is the semaphore of requests in flight.
type Slots struct{ s *slots }

func NewSlots(size int) Slots { return Slots{newSlots(size)} }

// Request requests a slot for an endpoint that has inFlight; granted tells whether it has it, and cancel ends the request.
func (s Slots) Request(account uuid.UUID, inFlight int) (granted func() bool, cancel func()) {
	r := s.s.request(account, inFlight)
	return func() bool {
		select {
		case <-r.granted:
			return true
		default:
			return false
		}
	}, func() { s.s.cancel(r) }
}

func (s Slots) More(account uuid.UUID, n int) int { return s.s.more(account, n) }

func (s Slots) Release(account uuid.UUID, n int) { s.s.release(account, n) }

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
