// Package watch follows intents on their chains: it reads blocks, events of settlers and the transactions that clients report,
// and records their effects on intents.
//
// Each chain is followed by one process at a time, which holds its lease. The domain decides what a transaction means, and the
// database transaction decides how it changes the intent. This package decides what is certain enough to be written.
package watch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tokenbucket"
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
	Store    *intents.Store
	Watched  *watched.Store
	Registry *registry.LiveRegistry
	Client   *rpc.Client
	Log      *slog.Logger
	// Screening knows which accounts are listed; nil for none.
	Screening *screening.Screen
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
	// lookUpRule bounds the look-ups of each account and chain, and lookedUp counts them.
	lookUpRule tokenbucket.Rule
	lookedUp   *tokenbucket.Memory
	// pollBytes bounds what one poll reads of transactions that clients have named, and accountBytes the part of one account.
	pollBytes, accountBytes int

	mu    sync.Mutex
	loops map[caip.ChainID]*loop
	// reportLogs samples the lines about failed look-ups of reports.
	reportLogs telemetry.Sampler
}

// New returns a watcher of the chains that have providers.
func New(config Config) *Watcher {
	if config.Tick == 0 {
		config.Tick = DefaultTick
	}
	if config.Grace == 0 {
		config.Grace = DefaultGrace
	}
	unreadable := telemetry.Sampler{Every: warnEvery}
	if config.Store != nil {
		config.Store.OnUnreadable(func(err error) {
			if suppressed, due := unreadable.Due(); due {
				config.Log.Error("rows are left to the version of core that can read them", "error", err, "suppressed", suppressed)
			}
		})
	}
	return &Watcher{
		Config: config, holder: uuid.NewString(), metrics: newMetrics(config.Metrics),
		reports: make(chan report, reportQueue), loops: map[caip.ChainID]*loop{},
		lookUpRule: tokenbucket.Per(lookUpsPerDay, 24*time.Hour), lookedUp: tokenbucket.NewMemory(lookingAccounts),
		pollBytes: pollBytes, accountBytes: accountBytes, reportLogs: telemetry.Sampler{Every: warnEvery},
	}
}

// Run follows this process's share of the chains, and those whose processes do not, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer w.endWatching(ctx)
	defer running.Wait()
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		w.renewLeases(ctx)
		w.share(ctx, &running)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// share takes the free leases of the process's share of the chains, and hands over what it holds of the shares of others.
func (w *Watcher) share(ctx context.Context, running *sync.WaitGroup) {
	attempt, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	var known []caip.ChainID
	for _, chain := range w.Client.Chains() {
		if _, ok := w.Registry.Current().Chain(chain.ID()); ok {
			known = append(known, chain.ID())
		}
	}
	alive, err := w.Watched.Watching(attempt, w.holder, known, leaseTTL)
	if err == nil {
		own, others := w.divide(known, alive)
		var leases []watched.Lease
		leases, err = w.Watched.AcquireLeases(attempt, own, others, w.holder, leaseTTL)
		for _, lease := range leases {
			if chain, ok := w.Client.Chain(lease.Chain); ok {
				w.follow(ctx, chain, lease, running)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("leases of chains cannot be read; trying again", "retry_every", leaseEvery.String(), "error", err)
	}
}

// divide returns the chains of this process's share that it does not follow yet, and those of the others. Chains of others that it follows
// are handed over: their loops end, and their leases are released.
func (w *Watcher) divide(known []caip.ChainID, alive map[string][]string) (own, others []caip.ChainID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range known {
		isOwn, follows := ownerOf(id.String(), alive) == w.holder, w.loops[id]
		switch {
		case isOwn && follows == nil:
			own = append(own, id)
		case !isOwn && follows == nil:
			others = append(others, id)
		case !isOwn:
			follows.log.Info("handing the chain over to another process")
			follows.cancel()
		}
	}
	return own, others
}

// ownerOf is the process whose share a chain is in, by rendezvous hashing among those that can follow it: when a process comes or goes, no
// other chains move than its own.
func ownerOf(chain string, alive map[string][]string) (owner string) {
	var highest [sha256.Size]byte
	for holder, chains := range alive {
		score := sha256.Sum256([]byte(holder + " " + chain))
		if slices.Contains(chains, chain) && (owner == "" || bytes.Compare(score[:], highest[:]) > 0) {
			owner, highest = holder, score
		}
	}
	return owner
}

func (w *Watcher) endWatching(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	if err := w.Watched.EndWatching(ctx, w.holder); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.Log.Warn("the end of this process is not recorded; its chains are taken over once their leases run out", "error", err)
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
	var leases []watched.Lease
	loops := make(map[caip.ChainID]*loop, len(w.loops))
	for id, l := range w.loops {
		if _, known := w.Registry.Current().Chain(id); known {
			leases = append(leases, l.lease)
			loops[id] = l
		}
	}
	w.mu.Unlock()
	renew := func(ctx context.Context, leases []watched.Lease) (postgres.Renewal[watched.Lease], error) {
		return w.Watched.RenewLeases(ctx, leases, leaseTTL)
	}
	_ = postgres.RenewLeases(ctx, leases, renew, func(lease watched.Lease) { // after an error the next attempt is well before they run out
		loops[lease.Chain].log.Info("another process follows the chain now")
		loops[lease.Chain].cancel()
	})
}

// follow runs the loop of a chain until its lease is lost or ctx ends, and then releases the lease.
func (w *Watcher) follow(ctx context.Context, chain *rpc.Chain, lease watched.Lease, running *sync.WaitGroup) {
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
		if err := w.Watched.ReleaseLease(release, lease); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.Log.Warn("lease of a chain is not released; it runs out", "chain", chain.ID().String(), "error", err)
		}
	})
}
