// Package cores is the set of cores as the gateway sees it: which there are, which are up, and which gets the next request.
//
// It owns the resolution of the cores' names, the probes' schedule, the ejection of a core that fails and its return, and the choice of the core
// for each attempt. It sends nothing itself: a Transport probes a core and has the connections to it.
package cores

import (
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxCores bounds the cores of a set.
const MaxCores = 64

// Set is the set of cores and their health. It never rejects a request: if no core is up, all are tried. It is safe for concurrent
// use.
type Set struct {
	cores      atomic.Pointer[[]*Core]
	connect    func(*Core) Transport
	urls       []*url.URL
	resolve    func(ctx context.Context, host string) ([]netip.Addr, error)
	log        *slog.Logger
	metrics    metrics
	resolveNow chan struct{}
	// mu is held while a core is added or removed.
	mu sync.Mutex
	// warned is the last warning about each name, so that none is repeated. Only Run uses it.
	warned map[*url.URL]string
	// readyAt is when a probe last found a core ready, or the set was made.
	readyAt atomic.Pointer[time.Time]
	// roundRobin spreads requests evenly over cores with the same load.
	roundRobin atomic.Uint32
}

// Options are the set's settings; all must be set unless said otherwise.
type Options struct {
	// URLs are base URLs, http or https, without a path; 1 to MaxCores, all different. A host name stands for one core per
	// address.
	URLs []*url.URL
	// Resolve returns the addresses of a name; nil for the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Connect returns the transport of a core that joins the set, and opens no connection.
	Connect func(*Core) Transport
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Transport is the connections to one core. Its methods must be safe for concurrent use.
type Transport interface {
	// Probe asks the core whether it is ready, and ends within a second. The error says why the core is not Up.
	Probe(ctx context.Context) (State, error)
	// GiveBack ends the waits of requests that were not sent to the core yet, so that each goes to another one.
	GiveBack()
	// Close closes the idle connections now and the others when their exchanges end.
	Close()
}

// New makes a set in which every core is up. Until Run resolves names, a name is one core.
func New(o Options) *Set {
	s := &Set{
		connect: o.Connect, urls: o.URLs, resolve: o.Resolve, log: o.Log, metrics: newMetrics(o.Metrics), resolveNow: make(chan struct{}, 1),
		warned: map[*url.URL]string{},
	}
	if s.resolve == nil {
		s.resolve = lookupNetIP
	}
	s.cores.Store(new([]*Core))
	s.setReady()
	for _, u := range o.URLs {
		s.add(u, Address(u), Up)
	}
	return s
}

// Close closes the connections to all cores. Run must have returned.
func (s *Set) Close() {
	for _, c := range s.All() {
		c.Transport.Close()
	}
}

// All returns the current cores.
func (s *Set) All() []*Core { return *s.cores.Load() }

// add adds a core to the set.
func (s *Set) add(u *url.URL, address string, as State) *Core {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.All()
	c := &Core{URL: u, Address: address, probeNow: make(chan struct{}, 1), resolveNow: s.resolveNow, set: s, log: s.log, stop: func() {}}
	c.unreachableLogs.Every = logEvery
	for slices.ContainsFunc(all, func(other *Core) bool { return other.index == c.index }) {
		c.index++
	}
	c.state.Store(int32(as))
	c.Transport = s.connect(c)
	c.unregister = s.metrics.add(c)
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
	c.unregister()
	c.Transport.Close()
}

// Tried is the result of one request's earlier attempts.
type Tried struct {
	// excluded has a bit for each core that gets no further attempt.
	excluded uint64
	// failed is the core of the last attempt that was sent and not answered, nil for none.
	failed *Core
}

// Exclude records that the core gets no further attempt.
func (t *Tried) Exclude(c *Core) { t.excluded |= 1 << c.index }

// MarkFailed records that the core did not respond to the request that was sent to it. The core that failed before is excluded, so
// a core gets a second attempt only as the last one.
func (t *Tried) MarkFailed(c *Core) {
	if t.failed != nil {
		t.Exclude(t.failed)
	}
	t.failed = c
}

// Pick returns the core for the next attempt: of the cores that are up and not tried, the one with the fewest requests in flight, where
// a recent failure counts as one. If there is none, it returns the core that failed, because only the connection may have been broken, and
// then the ejected cores. It returns nil when no core is left.
func (s *Set) Pick(t Tried) *Core {
	if all := s.All(); len(all) == 1 && t.excluded == 0 {
		return all[0]
	}
	if c := s.leastRequests(t, true); c != nil {
		return c
	}
	if t.failed != nil && t.excluded&(1<<t.failed.index) == 0 {
		return t.failed
	}
	return s.leastRequests(t, false)
}

func (s *Set) leastRequests(t Tried, onlyUp bool) (least *Core) {
	all, leastLoad := s.All(), 0.0
	count := uint32(len(all)) //nolint:gosec // at most MaxCores
	first := s.roundRobin.Add(1)
	for n := range count {
		c := all[(first+n)%count]
		if t.excluded&(1<<c.index) != 0 || c == t.failed || onlyUp && !c.Up() {
			continue
		}
		if load := c.load(); least == nil || load < leastLoad {
			least, leastLoad = c, load
		}
	}
	return least
}

// OtherUp reports whether another core of the set is up.
func (c *Core) OtherUp() bool {
	for _, other := range c.set.All() {
		if other != c && other.Up() {
			return true
		}
	}
	return false
}

// giveBack makes the unsent requests of the cores that are not up go to another core, if one is up.
func (s *Set) giveBack() {
	for _, c := range s.All() {
		if c.Lost() {
			c.Transport.GiveBack()
		}
	}
}

// Lost reports whether another core is up and this one is not.
func (c *Core) Lost() bool { return !c.Up() && c.OtherUp() }
