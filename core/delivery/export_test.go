package delivery

import (
	"time"

	"github.com/google/uuid"
)

// SetTimeout replaces attemptTimeout, for tests whose receivers never answer.
func (c *Client) SetTimeout(timeout time.Duration) { c.timeout = timeout }

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
