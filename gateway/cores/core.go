package cores

import (
	"net"
	"net/url"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// state is what is known of a core.
type state int32

const (
	// up cores are asked.
	up state = iota
	// doubted cores have failed a request. A probe is under way that will tell.
	doubted
	// refusing cores answer their probes, but with the word that they cannot work, or are about to end. What they have
	// begun they finish.
	refusing
	// down cores do not answer.
	down
)

// Core is one core. It is safe for concurrent use.
type Core struct {
	URL *url.URL
	// Address is the host:port that the URL means; it names the core in metrics and logs.
	Address string
	// Index is the core's place in its set.
	Index int

	state    atomic.Int32
	epoch    atomic.Uint32
	underWay atomic.Int64
	// suspected has the core probed now.
	suspected chan struct{}
	setAside  prometheus.Counter
}

// Address is the host:port that a base URL means.
func Address(base *url.URL) string {
	if base.Port() != "" {
		return base.Host
	}
	if base.Scheme == "https" {
		return net.JoinHostPort(base.Hostname(), "443")
	}
	return net.JoinHostPort(base.Hostname(), "80")
}

// Begin and End count a request that is under way at the core.
func (c *Core) Begin() { c.underWay.Add(1) }

// End is Begin's other half.
func (c *Core) End() { c.underWay.Add(-1) }

// Up reports whether the core is to be asked.
func (c *Core) Up() bool { return state(c.state.Load()) == up }

// Down reports whether the core is known not to answer: what is under way there may never be answered.
func (c *Core) Down() bool { return state(c.state.Load()) == down }

// Epoch changes whenever connections to the core that lie idle have become doubtful.
func (c *Core) Epoch() uint32 { return c.epoch.Load() }

// Unreachable sets the core aside because a connection could not be made.
func (c *Core) Unreachable() {
	c.epoch.Add(1)
	if !c.leave(down) {
		c.state.CompareAndSwap(int32(doubted), int32(down))
	}
}

// Failed sets the core aside until a probe, which follows at once, has shown that it answers: one request that broke off
// or was not answered in time may have been the request's own doing.
func (c *Core) Failed() { c.leave(doubted) }

// leave ends being up, and reports whether the core was.
func (c *Core) leave(next state) bool {
	if !c.state.CompareAndSwap(int32(up), int32(next)) {
		return false
	}
	c.setAside.Inc()
	c.wake()
	return true
}

// Suspect has the core probed now, because it has closed a connection as one does that is about to end.
func (c *Core) Suspect() {
	if c.Up() {
		c.wake()
	}
}

func (c *Core) wake() {
	select {
	case c.suspected <- struct{}{}:
	default: // a probe is due already
	}
}

// conclude takes a probe's result over and returns the state from before.
func (c *Core) conclude(now state) (before state) {
	before = state(c.state.Swap(int32(now)))
	if before == up && now != up {
		c.setAside.Inc()
	}
	if now != up && now != before {
		c.epoch.Add(1)
	}
	return before
}
