// Package cores knows the cores that a gateway stands before, and which of them answer.
//
// It owns the resolution of their names, the choice of the core that is asked next, and what it takes to set one aside: a request
// that could not reach it, or a probe that it failed. It never refuses service: where no core seems to answer, all are tried.
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

// MaxCores is how many cores a set may have.
const MaxCores = 64

// Options say which cores there are; all must be set unless said otherwise.
type Options struct {
	// URLs are base URLs, http or https, without a path; 1 to MaxCores, all different. A name stands for as many cores as it has
	// addresses.
	URLs []*url.URL
	// Resolve returns the addresses of a name; nil for the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Secret proves to a core that a probe comes from a gateway.
	Secret telemetry.Secret
	// TLS is how https cores are spoken to; nil for the system's authorities.
	TLS     *tls.Config
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Set is the cores. It is safe for concurrent use.
type Set struct {
	cores   atomic.Pointer[[]*Core]
	urls    []*url.URL
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	tls     *tls.Config
	secret  telemetry.Secret
	log     *slog.Logger
	metrics metrics
	lost    chan struct{}
	// changing guards what follows, and is held while a core is added or removed.
	changing sync.Mutex
	members  []func(*Core) (leave func())
	// warned is what was last said of each name, so that nothing is said twice.
	warned map[*url.URL]string
	// turn spreads requests evenly over cores that are equally busy.
	turn atomic.Uint32
}

// New makes a set in which every core is taken to answer. Without Run it never learns that one answers again, nor how many
// cores a name stands for: it is one until then.
func New(o Options) *Set {
	s := &Set{
		urls: o.URLs, resolve: o.Resolve, tls: o.TLS, secret: o.Secret, log: o.Log, metrics: newMetrics(o.Metrics), lost: make(chan struct{}, 1),
		warned: map[*url.URL]string{},
	}
	if s.resolve == nil {
		s.resolve = lookUp
	}
	s.cores.Store(new([]*Core))
	for _, u := range o.URLs {
		s.add(u, Address(u), up)
	}
	return s
}

// All are the cores there are now.
func (s *Set) All() []*Core { return *s.cores.Load() }

// Each calls join with every core there is, and with every further one before it is asked. The function that join returns is
// called when the core has left the set; requests may be under way there.
func (s *Set) Each(join func(*Core) (leave func())) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.members = append(s.members, join)
	for _, c := range s.All() {
		c.closers = append(c.closers, join(c))
	}
}

// add takes a core into the set.
func (s *Set) add(u *url.URL, address string, as state) *Core {
	s.changing.Lock()
	defer s.changing.Unlock()
	all := s.All()
	c := &Core{URL: u, Address: address, suspected: make(chan struct{}, 1), lost: s.lost, log: s.log, stop: func() {}}
	c.unreachable.Every = logEvery
	for slices.ContainsFunc(all, func(other *Core) bool { return other.index == c.index }) {
		c.index++
	}
	c.state.Store(int32(as))
	c.probes = s.newProbes(c)
	c.closers = append(c.closers, s.metrics.add(c))
	for _, join := range s.members {
		c.closers = append(c.closers, join(c))
	}
	all = append(slices.Clone(all), c)
	s.cores.Store(&all)
	return c
}

// remove takes a core out of the set. What is under way there goes on.
func (s *Set) remove(c *Core) {
	s.changing.Lock()
	defer s.changing.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.All()), func(other *Core) bool { return other == c })
	s.cores.Store(&all)
	c.stop()
	for _, undo := range c.closers {
		undo()
	}
	c.closers = nil
}

// TLS is how the core is to be spoken to, nil for plain HTTP. The caller may change what it gets.
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

// Tried is what has become of one request's earlier attempts.
type Tried struct {
	// refused has a bit for each core that could not be reached.
	refused uint64
	// broke is the core that may have got the request and did not answer it, nil for none.
	broke *Core
}

// Refused notes that the core could not be reached: nothing was sent to it.
func (t *Tried) Refused(c *Core) { t.refused |= 1 << c.index }

// Broke notes that the core did not answer what was sent to it.
func (t *Tried) Broke(c *Core) { t.broke = c }

// Pick chooses the core for the next attempt: of those that are up and were not tried, the one with the fewest requests
// under way. Where there is none, the core that broke off, whose fault may have been the connection's, and then those
// that were set aside. It returns nil when no core is left.
func (s *Set) Pick(t Tried) *Core {
	if all := s.All(); len(all) == 1 && t.refused == 0 {
		return all[0]
	}
	if c := s.leastBusy(t, true); c != nil {
		return c
	}
	if t.broke != nil && t.refused&(1<<t.broke.index) == 0 {
		return t.broke
	}
	return s.leastBusy(t, false)
}

func (s *Set) leastBusy(t Tried, up bool) (least *Core) {
	all := s.All()
	count := uint32(len(all)) //nolint:gosec // at most MaxCores
	first := s.turn.Add(1)
	for n := range count {
		c := all[(first+n)%count]
		if t.refused&(1<<c.index) != 0 || c == t.broke || up && !c.Up() {
			continue
		}
		if least == nil || c.underWay.Load() < least.underWay.Load() {
			least = c
		}
	}
	return least
}

// Others reports whether there is a core besides this one that is up.
func (s *Set) Others(than *Core) bool {
	for _, c := range s.All() {
		if c != than && c.Up() {
			return true
		}
	}
	return false
}
