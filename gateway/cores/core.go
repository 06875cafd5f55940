package cores

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
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
	// URL is the base URL it was found by, whose host it is called by in requests and certificates.
	URL *url.URL
	// Address is the host:port it is reached at; it names the core in metrics and logs.
	Address string

	index    int // of its bit in Tried
	state    atomic.Int32
	epoch    atomic.Uint32
	underWay atomic.Int64
	// suspected has the core probed now.
	suspected chan struct{}
	setAside  prometheus.Counter
	log       *slog.Logger
	// unreachable samples the log of connections that could not be made.
	unreachable telemetry.Sampler
	// lost has the names resolved now.
	lost   chan struct{}
	probes *http.Client
	// missing counts the resolutions in a row whose answer lacks the address.
	missing int
	// stop ends the probes, and closers undo what was made for the core.
	stop    context.CancelFunc
	closers []func()
}

// DialContext connects to the core, whatever address is given: an HTTP transport takes it from the URL, whose host may be the
// name of several cores.
func (c *Core) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, c.Address)
}

// logEvery is the least time between two log lines about connections that could not be made to the same core.
const logEvery = 5 * time.Second

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

// Unreachable sets the core aside because a connection could not be made, for this cause.
func (c *Core) Unreachable(cause error) {
	if suppressed, due := c.unreachable.Due(); due {
		c.log.Warn("core unreachable", "core", c.Address, "error", cause, "suppressed", suppressed)
	}
	c.epoch.Add(1)
	wake(c.lost)
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
	wake(c.suspected)
	return true
}

// Suspect has the core probed now, because it has closed a connection as one does that is about to end.
func (c *Core) Suspect() {
	if c.Up() {
		wake(c.suspected)
	}
}

func wake(sleeper chan<- struct{}) {
	select {
	case sleeper <- struct{}{}:
	default: // it is awake already
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
	if now == down && now != before {
		wake(c.lost)
	}
	return before
}
