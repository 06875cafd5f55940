// Package cores keeps the set of cores and their health.
//
// It owns the resolution of their names, the choice of the core for each attempt, and the ejection of a core after a failed dial,
// request or probe. It never rejects a request: if no core is up, all are tried.
package cores

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

// MaxCores bounds the cores of a set.
const MaxCores = 64

// Options are the set's settings; all must be set unless said otherwise.
type Options struct {
	// URLs are base URLs, http or https, without a path; 1 to MaxCores, all different. A host name stands for one core per
	// address.
	URLs []*url.URL
	// Resolve returns the addresses of a name; nil for the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Secret proves to a core that a probe comes from a gateway.
	Secret telemetry.Secret
	// TLS is the configuration for https cores; nil for the system's certificate authorities.
	TLS     *tls.Config
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Set is the set of cores. It is safe for concurrent use.
type Set struct {
	cores      atomic.Pointer[[]*Core]
	urls       []*url.URL
	resolve    func(ctx context.Context, host string) ([]netip.Addr, error)
	tls        *tls.Config
	secret     telemetry.Secret
	log        *slog.Logger
	metrics    metrics
	resolveNow chan struct{}
	// mu guards the fields below, and is held while a core is added or removed.
	mu    sync.Mutex
	joins []func(*Core) (leave func())
	// warned is the last warning about each name, so that none is repeated.
	warned map[*url.URL]string
	// roundRobin spreads requests evenly over cores with equally many in flight.
	roundRobin atomic.Uint32
}

// New makes a set in which every core is up. Only Run probes the cores and resolves names; until then a name is one core.
func New(o Options) *Set {
	s := &Set{
		urls: o.URLs, resolve: o.Resolve, tls: o.TLS, secret: o.Secret, log: o.Log, metrics: newMetrics(o.Metrics), resolveNow: make(chan struct{}, 1),
		warned: map[*url.URL]string{},
	}
	if s.resolve == nil {
		s.resolve = lookupNetIP
	}
	s.cores.Store(new([]*Core))
	for _, u := range o.URLs {
		s.add(u, Address(u), up)
	}
	return s
}

// All returns the current cores.
func (s *Set) All() []*Core { return *s.cores.Load() }

// subscribe calls join with every core of the set, and with every new core before it is picked. The function that join returns is
// called after the core was removed; it may still have requests in flight.
func (s *Set) subscribe(join func(*Core) (leave func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins = append(s.joins, join)
	for _, c := range s.All() {
		c.closers = append(c.closers, join(c))
	}
}

// add adds a core to the set.
func (s *Set) add(u *url.URL, address string, as state) *Core {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.All()
	c := &Core{URL: u, Address: address, probeNow: make(chan struct{}, 1), resolveNow: s.resolveNow, log: s.log, stop: func() {}}
	c.unreachableLogs.Every = logEvery
	for slices.ContainsFunc(all, func(other *Core) bool { return other.index == c.index }) {
		c.index++
	}
	c.state.Store(int32(as))
	c.probes = s.newProbes(c)
	c.closers = append(c.closers, s.metrics.add(c))
	for _, join := range s.joins {
		c.closers = append(c.closers, join(c))
	}
	all = append(slices.Clone(all), c)
	s.cores.Store(&all)
	return c
}

// remove removes a core from the set. Its requests in flight continue.
func (s *Set) remove(c *Core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.All()), func(other *Core) bool { return other == c })
	s.cores.Store(&all)
	c.stop()
	for _, undo := range c.closers {
		undo()
	}
	c.closers = nil
}

// TLS is the configuration for the core, nil for plain HTTP. The caller may change it.
func (s *Set) TLS(c *Core) *tls.Config {
	if c.URL.Scheme != "https" {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.tls != nil {
		config = s.tls.Clone()
	}
	config.ServerName = c.URL.Hostname()
	return config
}

// Tried is the result of one request's earlier attempts.
type Tried struct {
	// unreachable has a bit for each core that could not be reached.
	unreachable uint64
	// failed is the core that received the request and did not respond, nil for none.
	failed *Core
}

// MarkUnreachable records that the core could not be reached and that nothing was sent to it.
func (t *Tried) MarkUnreachable(c *Core) { t.unreachable |= 1 << c.index }

// MarkFailed records that the core did not respond to a request that was sent to it.
func (t *Tried) MarkFailed(c *Core) { t.failed = c }

// Pick returns the core for the next attempt: of the cores that are up and not tried, the one with the fewest requests in flight.
// If there is none, it returns the core that failed, because only the connection may have been broken, and then the ejected
// cores. It returns nil when no core is left.
func (s *Set) Pick(t Tried) *Core {
	if all := s.All(); len(all) == 1 && t.unreachable == 0 {
		return all[0]
	}
	if c := s.leastRequests(t, true); c != nil {
		return c
	}
	if t.failed != nil && t.unreachable&(1<<t.failed.index) == 0 {
		return t.failed
	}
	return s.leastRequests(t, false)
}

func (s *Set) leastRequests(t Tried, onlyUp bool) (least *Core) {
	all := s.All()
	count := uint32(len(all)) //nolint:gosec // at most MaxCores
	first := s.roundRobin.Add(1)
	for n := range count {
		c := all[(first+n)%count]
		if t.unreachable&(1<<c.index) != 0 || c == t.failed || onlyUp && !c.Up() {
			continue
		}
		if least == nil || c.inFlight.Load() < least.inFlight.Load() {
			least = c
		}
	}
	return least
}

// OtherUp reports whether another core is up.
func (s *Set) OtherUp(than *Core) bool {
	for _, c := range s.All() {
		if c != than && c.Up() {
			return true
		}
	}
	return false
}
