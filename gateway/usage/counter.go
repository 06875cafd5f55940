package usage

import (
	"sync/atomic"
	"time"
)

// Kind is what the gateway did with a request that bore a usable key.
type Kind int

const (
	// Refused requests were turned away for another reason than the rate limit: path, method, body or environment. It is
	// the zero value: a request that was not passed on is one of these unless it is said to be Limited.
	Refused Kind = iota
	// Limited requests were over the rate limit.
	Limited
	// Accepted requests passed every check and were sent on to core, whatever came of that.
	Accepted
	kinds
)

// Counter counts the requests of one key between two gatherings. It takes 48 bytes and is part of the key's verdict: it
// lives as long as that or, where it has counted since the last gathering, until the next, so nothing counted is lost
// with a verdict and nothing is held for a key that rests. A key may have several counters; they are added up.
type Counter struct {
	keyID string
	// next is the one below on the recorder's stack. It belongs to whoever turned touched from 0 to 1, then to whoever
	// took the stack.
	next *Counter
	// latest is when the last request arrived, in milliseconds since 1970.
	latest atomic.Int64
	counts [kinds]atomic.Uint32
	// touched is 1 while the counter is on the stack.
	touched atomic.Uint32
}

// SetKeyID says whose requests are counted. It must be called once, before the counter is shared.
func (c *Counter) SetKeyID(keyID string) { c.keyID = keyID }

// KeyID is whose requests are counted.
func (c *Counter) KeyID() string { return c.keyID }

// add counts a request and reports whether the counter must be put on the stack, which is for the caller to do.
func (c *Counter) add(kind Kind, at time.Time) (first bool) {
	c.latest.Store(at.UnixMilli())
	c.counts[kind].Add(1)
	// After the add: a gathering that has not seen it yet either finds the counter on the stack or lets it back there.
	return c.touched.Load() == 0 && c.touched.CompareAndSwap(0, 1)
}

// take empties a counter that was taken off the stack.
func (c *Counter) take() tally {
	c.touched.Store(0) // before the reading, see add
	t := tally{latest: c.latest.Load()}
	for kind := range c.counts {
		t.counts[kind] = int64(c.counts[kind].Swap(0))
	}
	return t
}

// stack is the counters that have counted since it was last taken. Putting one there costs one compare-and-swap.
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
