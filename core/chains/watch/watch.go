// Package watch follows intents on their chains: it reads blocks, events of settlers and the transactions that clients report,
// and records their effects on intents.
//
// Each chain is followed by one process at a time, which holds its lease. The domain decides what a transaction means, and the
// database transaction decides how it changes the intent. This package decides what is certain enough to be written.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/store/chains"
	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
)

const (
	// leaseTTL is how long a chain is not read after the process that follows it was killed.
	leaseTTL = 15 * time.Second
	// leaseEvery is how often leases are renewed and free ones acquired.
	leaseEvery = 4 * time.Second
	// leaseTimeout bounds one statement about a lease.
	leaseTimeout = 3 * time.Second
	// DefaultTick is the minimum time between two polls of a chain.
	DefaultTick = 4 * time.Second
	// DefaultGrace is how long after its deadline the watcher waits for an attempt that no provider knows.
	DefaultGrace = time.Hour
)

// Config is the watcher's configuration.
type Config struct {
	Store    *chains.Store
	Registry *intents.LiveRegistry
	Client   *rpc.Client
	Log      *slog.Logger
	// Metrics registers the watcher's metrics; nil for none.
	Metrics prometheus.Registerer
	// Tick is the minimum time between two polls of a chain, DefaultTick if it is 0. Chains with longer block times are polled
	// once a block.
	Tick time.Duration
	// Grace is how long after its deadline the watcher waits for an attempt that no provider knows, DefaultGrace if it is 0.
	Grace time.Duration
}

// Watcher follows chains.
type Watcher struct {
	Config
	holder  string
	metrics *metrics
	reports chan report

	mu    sync.Mutex
	loops map[caip.ChainID]*loop
	// reportWarnedAt is when the failed look-up of a report was last logged.
	reportWarnedAt time.Time
}

// New returns a watcher of the chains that have providers.
func New(config Config) *Watcher {
	if config.Tick == 0 {
		config.Tick = DefaultTick
	}
	if config.Grace == 0 {
		config.Grace = DefaultGrace
	}
	return &Watcher{
		Config: config, holder: uuid.NewString(), metrics: newMetrics(config.Metrics),
		reports: make(chan report, reportQueue), loops: map[caip.ChainID]*loop{},
	}
}

// Run follows the chains that no other process follows, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		w.renewLeases(ctx)
		for _, chain := range w.Client.Chains() {
			w.acquire(ctx, chain, &running)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Wake triggers a poll of a chain, if this process follows it.
func (w *Watcher) Wake(chain caip.ChainID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.loops[chain]; l != nil {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// renewLeases renews the leases of the chains that this process follows, in one statement.
func (w *Watcher) renewLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	w.mu.Lock()
	var leases []chains.Lease
	loops := make(map[caip.ChainID]*loop, len(w.loops))
	for id, l := range w.loops {
		if _, known := w.Registry.Current().Chain(id); known {
			leases = append(leases, l.lease)
			loops[id] = l
		}
	}
	w.mu.Unlock()
	renew := func(ctx context.Context, leases []chains.Lease) (postgres.Renewal[chains.Lease], error) {
		return w.Store.RenewLeases(ctx, leases, leaseTTL)
	}
	_ = postgres.RenewLeases(ctx, leases, renew, func(lease chains.Lease) { // after an error the next attempt is well before they run out
		loops[lease.Chain].log.Info("another process follows the chain now")
		loops[lease.Chain].cancel()
	})
}

// acquire takes the lease of a chain that nobody follows, and starts to follow it.
func (w *Watcher) acquire(ctx context.Context, chain *rpc.Chain, running *sync.WaitGroup) {
	if _, known := w.Registry.Current().Chain(chain.ID()); !known {
		return
	}
	w.mu.Lock()
	current := w.loops[chain.ID()]
	w.mu.Unlock()
	if current != nil {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, ok, err := w.Store.AcquireLease(attempt, chain.ID(), w.holder, leaseTTL)
	if err != nil || !ok {
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("lease of a chain cannot be read; trying again", "chain", chain.ID().String(), "retry_every", leaseEvery.String(), "error", err)
		}
		return
	}
	w.follow(ctx, chain, lease, running)
}

// follow runs the loop of a chain until its lease is lost or ctx ends, and then releases the lease.
func (w *Watcher) follow(ctx context.Context, chain *rpc.Chain, lease chains.Lease, running *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	l := newLoop(w, chain, lease, cancel)
	w.mu.Lock()
	w.loops[chain.ID()] = l
	w.mu.Unlock()
	running.Go(func() {
		defer cancel()
		l.run(ctx)
		w.mu.Lock()
		delete(w.loops, chain.ID())
		w.mu.Unlock()
		l.metrics.forget()
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
		defer cancel()
		if err := w.Store.ReleaseLease(release, lease); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.Log.Warn("lease of a chain is not released; it runs out", "chain", chain.ID().String(), "error", err)
		}
	})
}
