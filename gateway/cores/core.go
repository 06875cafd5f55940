package cores

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

// State is the health of a core.
type State int32

const (
	// Up cores receive requests.
	Up State = iota
	// suspect cores have failed a request. The next probe decides on their state.
	suspect
	// Draining cores answer probes with an error: they cannot work, are shutting down or reject the shared secret. They finish
	// the requests in flight.
	Draining
	// Down cores do not answer.
	Down
)

// Core is one core. It is safe for concurrent use.
type Core struct {
	// URL is the configured base URL. Its host is used in requests and certificates.
	URL *url.URL
	// Address is the core's host:port, which is its name in metrics and logs.
	Address string
	// Transport is the connections to the core, as Options.Connect made it.
	Transport Transport

	index      int // the core's bit in Tried
	state      atomic.Int32
	generation atomic.Uint32
	inFlight   atomic.Int64
	failures   failures
	batches    atomic.Bool
	// probeNow triggers a probe.
	probeNow chan struct{}
	ejected  prometheus.Counter
	log      *slog.Logger
	// unreachableLogs samples the log of failed dials.
	unreachableLogs telemetry.Sampler
	// resolveNow triggers a resolution of the names.
	resolveNow chan struct{}
	// missed counts the consecutive resolutions without this address.
	missed int
	// set is the one that the core is of.
	set *Set
	// stop ends the probes, unregister removes the metrics.
	stop       context.CancelFunc
	unregister func()
}

// logEvery is the minimum time between two log lines about failed dials to a core.
const logEvery = 5 * time.Second

// Address returns the host:port of a base URL.
func Address(base *url.URL) string {
	if base.Port() != "" {
		return base.Host
	}
	if base.Scheme == "https" {
		return net.JoinHostPort(base.Hostname(), "443")
	}
	return net.JoinHostPort(base.Hostname(), "80")
}

// Begin counts a request that is sent to the core; End must follow.
func (c *Core) Begin() { c.inFlight.Add(1) }

// End counts a request that has ended.
func (c *Core) End() { c.inFlight.Add(-1) }

// Fail counts a request that the core failed.
func (c *Core) Fail() { c.failures.add() }

// load is what Pick compares: the requests in flight and the recent failures.
func (c *Core) load() float64 { return float64(c.inFlight.Load()) + c.failures.load() }

// Up reports whether the core gets requests.
func (c *Core) Up() bool { return State(c.state.Load()) == Up }

// Down reports whether the core is known to be unresponsive, so that requests in flight there may never be answered.
func (c *Core) Down() bool { return State(c.state.Load()) == Down }

// Batches reports whether the core serves batches of wire.BatchVersion, as it said last.
func (c *Core) Batches() bool { return c.batches.Load() }

// SetBatches records what the core has said: whether it serves batches.
func (c *Core) SetBatches(serves bool) { c.batches.Store(serves) }

// Generation changes when idle connections to the core may be broken.
func (c *Core) Generation() uint32 { return c.generation.Load() }

// MarkUnreachable ejects the core because of a failed dial.
func (c *Core) MarkUnreachable(cause error) {
	if suppressed, due := c.unreachableLogs.Due(); due {
		c.log.Warn("core unreachable", "core", c.Address, "error", cause, "suppressed", suppressed)
	}
	c.generation.Add(1)
	notify(c.resolveNow)
	if !c.markDown(Down) {
		c.state.CompareAndSwap(int32(suspect), int32(Down))
	}
}

// MarkFailed ejects the core and triggers a probe, which may readmit it: a request that broke off or timed out may itself be the
// cause.
func (c *Core) MarkFailed() { c.markDown(suspect) }

// markDown changes the state from up, and reports whether it was up.
func (c *Core) markDown(next State) bool {
	if !c.state.CompareAndSwap(int32(Up), int32(next)) {
		return false
	}
	c.ejected.Inc()
	notify(c.probeNow)
	c.set.giveBack()
	return true
}

// ProbeNow triggers a probe, because the core has closed a connection, as it does when it shuts down.
func (c *Core) ProbeNow() {
	if c.Up() {
		notify(c.probeNow)
	}
}

func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default: // already notified
	}
}

// setProbeResult sets the state that a probe has determined.
func (c *Core) setProbeResult(result State) {
	previous := State(c.state.Swap(int32(result)))
	if previous == Up && result != Up {
		c.ejected.Inc()
	}
	if result != Up && result != previous {
		c.generation.Add(1)
	}
	if result == Down && result != previous {
		notify(c.resolveNow)
	}
	if result != previous {
		c.set.giveBack()
	}
}
