package webhooks

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/feed"
	"intents.internal/core/postgres"
	"intents.internal/pkg/background"
	"intents.internal/pkg/fair"
)

const (
	// leaseTTL is how long endpoints have no sender after their sender was killed, and renewEvery how often leases are renewed.
	leaseTTL, renewEvery = 20 * time.Second, 5 * time.Second
	// sweepEvery is the interval between two searches for due deliveries: retries, requests through another process, and those of
	// processes that were killed.
	sweepEvery = 500 * time.Millisecond
	// backlogEvery is the maximum age of the backlog metric.
	backlogEvery = 15 * time.Second
	// statementTimeout bounds the database work of one round.
	statementTimeout = 10 * time.Second
	// perEndpoint bounds the requests in flight to one endpoint, and perFailing to one whose last attempts all failed.
	perEndpoint, perFailing = 8, 2
	// perRunner bounds the deliveries of an endpoint that are being sent or recorded.
	perRunner = 32
	// inFlight bounds the requests in flight to healthy endpoints, and inFlightFailing to failing ones, so that dead endpoints
	// cannot block the others.
	inFlight, inFlightFailing = 512, 128
	// maxRunners is how many healthy endpoints are leased at once, maxFailingRunners how many failing ones, and sweepLease how many
	// in one round.
	maxRunners, maxFailingRunners, sweepLease = 4_000, 1_000, 500
	// yieldRunners is how many healthy endpoints are handed back if there is no room for others, once they were leased for
	// yieldAfter.
	yieldRunners, yieldAfter = 250, 30 * time.Second
	// batchSize is how many endpoints, outcomes or leases one statement is about, and batchEvery the interval between two such statements.
	batchSize, batchEvery = 500, 20 * time.Millisecond
)

// Config is the dispatcher's configuration.
type Config struct {
	Store *Store
	// Feed reports accounts with new events.
	Feed   *feed.Follower
	Sealer *Sealer
	Client *Client
	Log    *slog.Logger
	// Metrics registers the dispatcher's metrics; nil for none.
	Metrics prometheus.Registerer
	// MailQueued is called after mails were put into the outbox, and must not block. Without it none are.
	MailQueued func()
	// Grace is how long the attempts in flight may take once Run's context has ended.
	Grace time.Duration
}

// Dispatcher makes deliveries and sends them.
type Dispatcher struct {
	Config
	lease   Lease
	metrics *metrics

	// enabled is false while there is no endpoint to send to, so that nothing is searched.
	enabled   atomic.Bool
	newEvents *accountQueue
	sweepNow  chan struct{}
	loads     chan load
	results   chan resultWrite
	releases  chan release
	// draining is closed once no new attempt may start.
	draining chan struct{}
	// healthy and failing bound the requests in flight.
	healthy, failing *fair.Slots[uuid.UUID]
	requests         inFlightRequests

	mu      sync.Mutex
	runners map[uuid.UUID]*runner
	// waiting are the runners of healthy endpoints that have nothing in flight and wait for a slot, and since when.
	waiting map[*runner]time.Time
	running sync.WaitGroup
}

// New returns a dispatcher, which does nothing before Run.
func New(config Config) *Dispatcher {
	return &Dispatcher{
		Config: config, lease: Lease{Holder: uuid.New(), TTL: leaseTTL}, metrics: newMetrics(config.Metrics),
		newEvents: newAccountQueue(), sweepNow: make(chan struct{}, 1),
		loads: make(chan load, batchSize), results: make(chan resultWrite, batchSize), releases: make(chan release, batchSize),
		draining: make(chan struct{}),
		healthy:  newSlots(inFlight), failing: newSlots(inFlightFailing), requests: inFlightRequests{all: map[*inFlightRequest]struct{}{}},
		runners: map[uuid.UUID]*runner{}, waiting: map[*runner]time.Time{},
	}
}

// Run dispatches and sends until ctx ends. Then it starts no new attempt, waits at most Grace for those in flight, records their
// results and releases its leases. Another process repeats an attempt that was cut off.
func (d *Dispatcher) Run(ctx context.Context) {
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	var loops, batchers, renewing sync.WaitGroup
	batchers.Go(func() { batch(d.loads, batchSize, func(all []load) { d.runLoads(work, all) }) })
	batchers.Go(func() { batch(d.results, batchSize, func(all []resultWrite) { d.writeResults(work, all) }) })
	batchers.Go(func() { batch(d.releases, batchSize, func(all []release) { d.writeReleases(work, all) }) })
	loops.Go(func() { d.reseal(ctx) })
	loops.Go(func() { d.follow(ctx) })
	loops.Go(func() {
		d.repeat(ctx, "look for webhooks", dispatchEvery, nil, func() (bool, error) { return false, d.readEnabled(ctx) })
	})
	loops.Go(func() {
		var state dispatchState
		d.repeat(ctx, "dispatch events to webhooks", dispatchEvery, d.newEvents.wake, func() (bool, error) { return d.dispatch(ctx, work, &state) })
		d.releaseDispatchLease(work)
	})
	loops.Go(func() {
		d.repeat(ctx, "find due webhook deliveries", sweepEvery, d.sweepNow, func() (bool, error) { return d.sweep(ctx, work) })
	})
	loops.Go(func() {
		d.repeat(ctx, "read the backlog of webhooks", backlogEvery, nil, func() (bool, error) { return d.readBacklog(ctx) })
	})
	drained, stopRenewing := context.WithCancel(work)
	defer stopRenewing()
	renewing.Go(func() {
		d.repeat(drained, "renew the leases of webhooks", renewEvery, nil, func() (bool, error) { return false, d.renew(drained) })
	})
	renewing.Go(func() {
		d.repeat(drained, "read the webhooks with requests in flight", revokeEvery, nil, func() (bool, error) { return false, d.revoke(drained) })
	})

	<-ctx.Done()
	close(d.draining)
	loops.Wait()
	timer := time.AfterFunc(d.Grace, cancelWork)
	defer timer.Stop()
	d.running.Wait()
	stopRenewing()
	renewing.Wait()
	close(d.loads)
	close(d.results)
	close(d.releases)
	batchers.Wait()
	d.Client.Close()
}

func (d *Dispatcher) repeat(ctx context.Context, name string, every time.Duration, wake <-chan struct{}, run func() (more bool, err error)) {
	background.Repeat(ctx, d.Log, background.Job{Name: name, Every: every, Wake: wake, Level: slog.LevelWarn}, run)
}

// readEnabled reads whether there is an endpoint to send to. After the first endpoint was created it triggers all searches that
// were skipped before.
func (d *Dispatcher) readEnabled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	enabled, err := d.Store.AnyWebhook(ctx)
	if err != nil {
		return err
	}
	if was := d.enabled.Swap(enabled); enabled && !was {
		signal(d.newEvents.wake)
		signal(d.sweepNow)
	}
	return nil
}

// sweep leases endpoints with due deliveries that no process has leased.
func (d *Dispatcher) sweep(ctx, work context.Context) (more bool, err error) {
	if !d.enabled.Load() {
		return false, nil
	}
	healthy, failing := d.leaseCapacity()
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	leased, err := d.Store.LeaseDue(ctx, d.lease, healthy, failing)
	if err != nil {
		return false, err
	}
	for _, one := range leased {
		d.start(work, one)
	}
	return len(leased) >= sweepLease, nil
}

// leaseCapacity returns how many healthy and how many failing endpoints this process may lease; half of each is for accounts that
// have none leased. If there is no capacity for healthy ones, those that were leased longest end, and have their turn again after
// others.
func (d *Dispatcher) leaseCapacity() (healthy, failing LeaseRoom) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var yielding []*runner
	running, runningFailing := 0, 0
	for _, r := range d.runners {
		if r.leasedFailing {
			runningFailing++
			continue
		}
		running++
		if time.Since(r.started) > yieldAfter {
			yielding = append(yielding, r)
		}
	}
	if running >= maxRunners {
		slices.SortFunc(yielding, func(a, b *runner) int { return a.started.Compare(b.started) })
		for _, r := range yielding[:min(len(yielding), yieldRunners)] {
			r.stop()
		}
	}
	return capacityOf(maxRunners, running), capacityOf(maxFailingRunners, runningFailing)
}

func capacityOf(size, running int) LeaseRoom {
	return LeaseRoom{Free: min(max(0, size-running), sweepLease), Shared: max(0, size/2-running)}
}

// setWaiting notes whether a runner is one of the dispatcher's waiting.
func (r *runner) setWaiting(waiting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting {
		r.waiting[r] = time.Now()
	} else {
		delete(r.waiting, r)
	}
}

// renew renews the leases of this process. An endpoint whose lease another process has taken starts no new attempt. Locked
// endpoints are left for the next renewal.
func (d *Dispatcher) renew(ctx context.Context) error {
	d.mu.Lock()
	held := make(map[uuid.UUID]*runner, len(d.runners))
	ids := make([]uuid.UUID, 0, len(d.runners))
	for id, r := range d.runners {
		held[id] = r
		ids = append(ids, id)
	}
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	renew := func(ctx context.Context, ids []uuid.UUID) (postgres.Renewal[uuid.UUID], error) {
		return d.Store.RenewLeases(ctx, d.lease, ids)
	}
	return postgres.RenewLeases(ctx, ids, renew, func(id uuid.UUID) { held[id].stop() })
}

func (d *Dispatcher) readBacklog(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	backlog, err := d.Store.Backlog(ctx)
	if err != nil {
		return false, err
	}
	unattended := backlog.Unleased
	d.mu.Lock()
	for _, since := range d.waiting {
		unattended = max(unattended, time.Since(since))
	}
	d.mu.Unlock()
	d.metrics.backlog.Set(backlog.Age.Seconds())
	d.metrics.unattended.Set(unattended.Seconds())
	return false, nil
}

// reseal seals all secrets under the current key, so that the previous key can be removed.
func (d *Dispatcher) reseal(ctx context.Context) {
	if !d.Sealer.HasPrevious() {
		return
	}
	changed, err := d.Store.ResealWebhooks(ctx, d.Sealer)
	if err != nil && ctx.Err() == nil {
		d.Log.Error("webhook secrets are not sealed under the current key; CORE_WEBHOOK_SECRET_KEY_PREVIOUS must stay", "error", err)
		return
	}
	d.Log.Info("all webhook secrets are sealed under the current key; CORE_WEBHOOK_SECRET_KEY_PREVIOUS can be removed", "resealed", changed)
}
