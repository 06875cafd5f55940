package usage

import (
	"sync/atomic"
	"time"
)

// Kind is how the gateway handled a request with a usable key.
type Kind int

const (
	// Refused requests were rejected for another reason than the rate limit: the key's networks or scopes, path, method, body or
	// environment. It is the zero value.
	Refused Kind = iota
	// Limited requests were over the rate limit.
	Limited
	// Accepted requests passed all checks and were sent to core, whatever core responded.
	Accepted
	kinds
)

// Counter counts the requests of one key between two gathers. It takes 48 bytes and is a part of the key's verdict. It lives as
// long as the verdict, or until the next gather if it has counted since the last, so an evicted verdict loses no counts and an
// idle key holds no memory. The counters of one key are added up.
type Counter struct {
	keyID string
	// next is the counter below this one on the recorder's stack. It belongs to the goroutine that set dirty, then to the one
	// that took the stack.
	next *Counter
	// latest is when the last request arrived, in milliseconds since 1970.
	latest atomic.Int64
	counts [kinds]atomic.Uint32
	// dirty is 1 while the counter is on the stack.
	dirty atomic.Uint32
}

// SetKeyID sets the key whose requests are counted. It must be called once, before the counter is shared.
func (c *Counter) SetKeyID(keyID string) { c.keyID = keyID }

// KeyID is the key whose requests are counted.
func (c *Counter) KeyID() string { return c.keyID }

// add counts a request and reports whether the caller must push the counter onto the stack.
func (c *Counter) add(kind Kind, at time.Time) (first bool) {
	c.latest.Store(at.UnixMilli())
	c.counts[kind].Add(1)
	// This follows the add: a gather that misses the add finds the counter on the stack, or lets it be pushed again.
	return c.dirty.Load() == 0 && c.dirty.CompareAndSwap(0, 1)
}

// take resets a counter that was taken off the stack.
func (c *Counter) take() counts {
	c.dirty.Store(0) // before the counts are read, see add
	t := counts{latest: c.latest.Load()}
	for kind := range c.counts {
		t.byKind[kind] = int64(c.counts[kind].Swap(0))
	}
	return t
}

// stack holds the counters that have counted since the last gather. A push costs one compare-and-swap.
type stack struct{ top atomic.Pointer[Counter] }

func (s *stack) push(c *Counter) {
	for {
		c.next = s.top.Load()
		if s.top.CompareAndSwap(c.next, c) {
			return
		}
	}
}

// takeAll empties the stack. The counters are linked by next, which must be read before a counter's take.
func (s *stack) takeAll() *Counter { return s.top.Swap(nil) }
