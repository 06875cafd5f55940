package upstream

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxCores bounds the cores of a set.
const MaxCores = 64

// Set is the set of cores and their health. It never rejects a request: if no core is up, all are tried. It is safe for concurrent
// use.
type Set struct {
	cores      atomic.Pointer[[]*Core]
	client     *Client
	urls       []*url.URL
	resolve    func(ctx context.Context, host string) ([]netip.Addr, error)
	tls        *tls.Config
	maxConns   int
	log        *slog.Logger
	metrics    coreMetrics
	resolveNow chan struct{}
	// mu is held while a core is added or removed.
	mu sync.Mutex
	// warned is the last warning about each name, so that none is repeated. Only run uses it.
	warned map[*url.URL]string
	// readyAt is when a probe last found a core ready, or the set was made.
	readyAt atomic.Pointer[time.Time]
	// roundRobin spreads requests evenly over cores with the same load.
	roundRobin atomic.Uint32
}

// newSet makes a set in which every core is up. Until run resolves names, a name is one core.
func newSet(client *Client, o Options) *Set {
	s := &Set{
		client: client, maxConns: o.MaxConns, urls: o.URLs, resolve: o.Resolve, tls: o.TLS, log: o.Log, metrics: newCoreMetrics(o.Metrics), resolveNow: make(chan struct{}, 1),
		warned: map[*url.URL]string{},
	}
	if s.resolve == nil {
		s.resolve = lookupNetIP
	}
	s.cores.Store(new([]*Core))
	s.setReady()
	for _, u := range o.URLs {
		s.add(u, Address(u), up)
	}
	return s
}

// All returns the current cores.
func (s *Set) All() []*Core { return *s.cores.Load() }

// add adds a core to the set.
func (s *Set) add(u *url.URL, address string, as state) *Core {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.All()
	c := &Core{URL: u, Address: address, probeNow: make(chan struct{}, 1), resolveNow: s.resolveNow, set: s, log: s.log, stop: func() {}}
	c.unreachableLogs.Every = logEvery
	for slices.ContainsFunc(all, func(other *Core) bool { return other.index == c.index }) {
		c.index++
	}
	c.state.Store(int32(as))
	c.pools = newPools(s, c)
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
	c.pools.close()
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
// a recent failure counts as one.
// If there is none, it returns the core that failed, because only the connection may have been broken, and then the ejected
// cores. It returns nil when no core is left.
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

// OtherUp reports whether another core is up.
func (s *Set) OtherUp(than *Core) bool {
	for _, c := range s.All() {
		if c != than && c.Up() {
			return true
		}
	}
	return false
}

// giveBack makes the unsent requests of the cores that are not up go to another core, if one is up.
func (s *Set) giveBack() {
	for _, c := range s.All() {
		if c.lost() {
			c.pools.group.giveBack()
			c.dials.cancel()
		}
	}
}

// lost reports whether another core is up and this one is not.
func (c *Core) lost() bool { return !c.Up() && c.set.OtherUp(c) }
