// Package delivery sends the events of the feed to the webhook endpoints of their accounts: it creates deliveries, signs and
// posts them, retries failed attempts, and disables endpoints that are gone.
//
// Any number of processes share the work. Only the process that holds an endpoint's lease sends to it. Deliveries and outcomes
// are in the database, so a process may be killed at any time. core/webhook has the rules.
package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/background"
	"intents.internal/core/event"
	"intents.internal/core/feed"
	"intents.internal/core/postgres"
	"intents.internal/core/webhook"
)

const (
	// leaseTTL is how long endpoints have no sender after their process was killed, and renewEvery the interval of lease
	// renewals.
	leaseTTL, renewEvery = 20 * time.Second, 5 * time.Second
	// renewRetry is the pause before the renewal of leases whose rows were locked is retried.
	renewRetry = 100 * time.Millisecond
	// sweepEvery is the interval at which due deliveries are searched: retries, deliveries that were requested at another
	// process, and deliveries of killed processes.
	sweepEvery = 500 * time.Millisecond
	// dispatchEvery is the interval at which events without a delivery are searched, and at which the existence of an endpoint is
	// checked.
	dispatchEvery = time.Second
	// backlogEvery is the interval at which the backlog metric is updated.
	backlogEvery = 15 * time.Second
	// statementTimeout bounds the database work of one round.
	statementTimeout = 10 * time.Second
	// perEndpoint bounds the requests in flight to one endpoint, and perFailing those to an endpoint whose last attempts all
	// failed.
	perEndpoint, perFailing = 8, 2
	// perLoad bounds the due deliveries of an endpoint that one load returns, and so those that are queued or being recorded.
	perLoad = 32
	// inFlight bounds the requests in flight to healthy endpoints, and inFlightFailing those to failing endpoints, so that dead
	// endpoints cannot use up the capacity of healthy ones.
	inFlight, inFlightFailing = 512, 128
	// maxRunners bounds the endpoints that are leased at a time, and sweepLease those that one sweep leases.
	maxRunners, sweepLease = 4_000, 500
	// batchSize bounds the endpoints, outcomes or leases of one statement, and batchEvery is the interval between two statements.
	batchSize, batchEvery = 500, 20 * time.Millisecond
)

// Config is the dispatcher's configuration.
type Config struct {
	Store *postgres.Store
	// Feed reports which accounts have new events.
	Feed   *feed.Follower
	Sealer *webhook.Sealer
	Client *Client
	Log    *slog.Logger
	// Metrics registers the dispatcher's metrics; nil for none.
	Metrics prometheus.Registerer
	// Grace is how long the attempts in flight may take once Run's context has ended.
	Grace time.Duration
}

// Dispatcher creates and sends deliveries.
type Dispatcher struct {
	Config
	lease   postgres.WebhookLease
	metrics *metrics

	// enabled is false while there is no endpoint to send to; then dispatch and sweep do nothing.
	enabled  atomic.Bool
	news     news
	sweepNow chan struct{}
	loads    chan load
	records  chan record
	releases chan release
	// draining is closed when no new attempt may begin.
	draining chan struct{}
	// healthy and failing are the semaphores of requests in flight.
	healthy, failing chan struct{}

	mu      sync.Mutex
	runners map[uuid.UUID]*runner
	running sync.WaitGroup
}

// New returns a dispatcher; Run starts it.
func New(config Config) *Dispatcher {
	return &Dispatcher{
		Config: config, lease: postgres.WebhookLease{Holder: uuid.New(), TTL: leaseTTL}, metrics: newMetrics(config.Metrics),
		news: news{wake: make(chan struct{}, 1), owners: map[event.Owner]bool{}}, sweepNow: make(chan struct{}, 1),
		loads: make(chan load, batchSize), records: make(chan record, batchSize), releases: make(chan release, batchSize),
		draining: make(chan struct{}),
		healthy:  make(chan struct{}, inFlight), failing: make(chan struct{}, inFlightFailing), runners: map[uuid.UUID]*runner{},
	}
}

// Run dispatches and sends until ctx ends. Then it begins no new attempts, waits at most Grace for those in flight, records their
// outcomes and releases its leases. Another process repeats an attempt that was cut off.
func (d *Dispatcher) Run(ctx context.Context) {
	work, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	var loops, helpers, renewing sync.WaitGroup
	helpers.Go(func() { batch(d.loads, batchSize, func(all []load) { d.answerLoads(work, all) }) })
	helpers.Go(func() { batch(d.records, batchSize, func(all []record) { d.writeRecords(work, all) }) })
	helpers.Go(func() { batch(d.releases, batchSize, func(all []release) { d.writeReleases(work, all) }) })
	loops.Go(func() { d.reseal(ctx) })
	loops.Go(func() { d.follow(ctx) })
	loops.Go(func() {
		d.repeat(ctx, "look for webhooks", dispatchEvery, nil, func() (bool, error) { return false, d.readEnabled(ctx) })
	})
	loops.Go(func() {
		d.repeat(ctx, "dispatch events to webhooks", dispatchEvery, d.news.wake, func() (bool, error) { return d.dispatch(ctx, work) })
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

	<-ctx.Done()
	close(d.draining)
	loops.Wait()
	timer := time.AfterFunc(d.Grace, cutOff)
	defer timer.Stop()
	d.running.Wait()
	stopRenewing()
	renewing.Wait()
	close(d.loads)
	close(d.records)
	close(d.releases)
	helpers.Wait()
	d.Client.Close()
}

func (d *Dispatcher) repeat(ctx context.Context, name string, every time.Duration, wake <-chan struct{}, run func() (more bool, err error)) {
	background.Repeat(ctx, d.Log, background.Job{Name: name, Every: every, Wake: wake, Level: slog.LevelWarn}, run)
}

// news is the set of owners with new events.
type news struct {
	wake chan struct{}

	mu     sync.Mutex
	owners map[event.Owner]bool
}

func (n *news) add(owners []event.Owner) {
	n.mu.Lock()
	for _, o := range owners {
		n.owners[o] = true
	}
	n.mu.Unlock()
	signal(n.wake)
}

// take removes and returns at most batchSize owners.
func (n *news) take() (owners []event.Owner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for o := range n.owners {
		if len(owners) == batchSize {
			break
		}
		owners = append(owners, o)
		delete(n.owners, o)
	}
	return owners
}

// signal wakes the reader of a channel with capacity one. A pending signal stands for all later ones.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// follow adds owners with new events to news until ctx ends or the feed drains.
func (d *Dispatcher) follow(ctx context.Context) {
	position, known := int64(0), false
	for ctx.Err() == nil {
		if !known {
			var err error
			if position, err = d.Feed.Position(ctx); err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(dispatchEvery): // meanwhile dispatch finds the events
				}
				continue
			}
			known = true
		}
		next, err := d.Feed.Wait(ctx, position)
		switch {
		case errors.Is(err, feed.ErrDraining):
			return
		case err != nil:
			known = false
			signal(d.news.wake) // dispatch checks all owners
		default:
			position = next.Position
			if d.enabled.Load() {
				d.news.add(next.Owners)
			}
		}
	}
}

// readEnabled reads whether there is an endpoint to send to. The first endpoint triggers a dispatch and a sweep.
func (d *Dispatcher) readEnabled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	enabled, err := d.Store.AnyWebhook(ctx)
	if err != nil {
		return err
	}
	if was := d.enabled.Swap(enabled); enabled && !was {
		signal(d.news.wake)
		signal(d.sweepNow)
	}
	return nil
}

// dispatch creates the deliveries of the owners in news. If news is empty it checks all owners, which finds events that a failed
// round has left.
func (d *Dispatcher) dispatch(ctx, work context.Context) (more bool, err error) {
	if !d.enabled.Load() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	owners := d.news.take()
	done, err := d.Store.DispatchEvents(ctx, owners, d.lease)
	if err != nil {
		return false, err
	}
	for _, id := range done.Leased {
		d.start(work, id)
	}
	if done.More {
		d.news.add(owners)
	}
	return done.More || len(owners) == batchSize, nil
}

// sweep leases endpoints that have due deliveries and no lease.
func (d *Dispatcher) sweep(ctx, work context.Context) (more bool, err error) {
	d.mu.Lock()
	room := min(sweepLease, maxRunners-len(d.runners))
	d.mu.Unlock()
	if room <= 0 || !d.enabled.Load() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	leased, err := d.Store.LeaseDue(ctx, d.lease, room)
	if err != nil {
		return false, err
	}
	for _, id := range leased {
		d.start(work, id)
	}
	return len(leased) == room, nil
}

// renew renews the leases of all endpoints that this process sends to. If another process has taken a lease, the endpoint's
// runner stops. Leases that stay locked are left for the next renewal.
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
	for {
		renewal, err := d.Store.RenewLeases(ctx, d.lease, ids)
		if err != nil {
			return err
		}
		for _, id := range renewal.Lost {
			held[id].stop()
		}
		if ids = renewal.Locked; len(ids) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewRetry):
		}
	}
}

func (d *Dispatcher) readBacklog(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	age, err := d.Store.BacklogAge(ctx)
	if err != nil {
		return false, err
	}
	d.metrics.backlog.Set(age.Seconds())
	return false, nil
}

// reseal encrypts all secrets under the current key, so that the previous key can be removed.
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
