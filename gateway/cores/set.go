// Package cores knows the cores that a gateway stands before, and which of them answer.
//
// It owns the choice of the core that is asked next, and what it takes to set one aside: a request that could not reach
// it, or a probe that it failed. It never refuses service: where no core seems to answer, all are tried.
package cores

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/pkg/telemetry"
)

// MaxCores is how many cores a set may have.
const MaxCores = 64

// Options say which cores there are; all must be set unless said otherwise.
type Options struct {
	// URLs are the cores' base URLs, http or https, without a path; 1 to MaxCores, all different.
	URLs []*url.URL
	// Secret proves to a core that a probe comes from a gateway.
	Secret telemetry.Secret
	// TLS is how https cores are spoken to; nil for the system's authorities.
	TLS     *tls.Config
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Set is the cores. It is safe for concurrent use.
type Set struct {
	cores  []*Core
	tls    *tls.Config
	secret atomic.Pointer[telemetry.Secret]
	probes *http.Client
	log    *slog.Logger
	// turn spreads requests evenly over cores that are equally busy.
	turn atomic.Uint32
}

// New makes a set in which every core is taken to answer. Without Run it never learns that one answers again.
func New(o Options) *Set {
	s := &Set{tls: o.TLS, log: o.Log}
	s.SetSecret(o.Secret)
	s.probes = s.newProbes()
	factory := promauto.With(o.Metrics)
	setAside := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_core_set_aside_total",
		Help: "Times a core was set aside because it could not be reached, broke off, timed out or failed its probe. " +
			"A rise means that the core, or the way to it, fails.",
	}, []string{"core"})
	for n, u := range o.URLs {
		c := &Core{URL: u, Address: Address(u), Index: n, suspected: make(chan struct{}, 1)}
		c.setAside = setAside.WithLabelValues(c.Address)
		s.cores = append(s.cores, c)
		labels := prometheus.Labels{"core": c.Address}
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gateway_core_up",
			Help:        "1 while requests are sent to the core, 0 while it is set aside. 0 for all cores means that all are tried anyway.",
			ConstLabels: labels,
		}, func() float64 {
			if c.Up() {
				return 1
			}
			return 0
		})
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gateway_core_requests_under_way",
			Help:        "Requests that the core has not answered to their end. A rise without more traffic means that it has become slow.",
			ConstLabels: labels,
		}, func() float64 { return float64(c.underWay.Load()) })
	}
	return s
}

// All are the cores, each at the place that its Index says.
func (s *Set) All() []*Core { return s.cores }

// SetSecret has probes bear another secret from now on.
func (s *Set) SetSecret(secret telemetry.Secret) { s.secret.Store(&secret) }

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

// Run probes the cores until ctx ends.
func (s *Set) Run(ctx context.Context) {
	var watches sync.WaitGroup
	for _, c := range s.cores {
		watches.Go(func() { s.watch(ctx, c) })
	}
	watches.Wait()
	s.probes.CloseIdleConnections()
}

// Tried is what has become of one request's earlier attempts.
type Tried struct {
	// refused has a bit for each core that could not be reached.
	refused uint64
	// broke is the core that may have got the request and did not answer it, nil for none.
	broke *Core
}

// Refused notes that the core could not be reached: nothing was sent to it.
func (t *Tried) Refused(c *Core) { t.refused |= 1 << c.Index }

// Broke notes that the core did not answer what was sent to it.
func (t *Tried) Broke(c *Core) { t.broke = c }

// Pick chooses the core for the next attempt: of those that are up and were not tried, the one with the fewest requests
// under way. Where there is none, the core that broke off, whose fault may have been the connection's, and then those
// that were set aside. It returns nil when no core is left.
func (s *Set) Pick(t Tried) *Core {
	if len(s.cores) == 1 && t.refused == 0 {
		return s.cores[0]
	}
	if c := s.leastBusy(t, true); c != nil {
		return c
	}
	if t.broke != nil && t.refused&(1<<t.broke.Index) == 0 {
		return t.broke
	}
	return s.leastBusy(t, false)
}

func (s *Set) leastBusy(t Tried, up bool) (least *Core) {
	count := uint32(len(s.cores)) //nolint:gosec // at most MaxCores
	first := s.turn.Add(1)
	for n := range count {
		c := s.cores[(first+n)%count]
		if t.refused&(1<<c.Index) != 0 || c == t.broke || up && !c.Up() {
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
	for _, c := range s.cores {
		if c != than && c.Up() {
			return true
		}
	}
	return false
}
