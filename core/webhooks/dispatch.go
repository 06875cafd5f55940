package webhooks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
)

const (
	// dispatchEvery is the interval between two searches for events without a delivery, and for enabled endpoints.
	dispatchEvery = time.Second
	// dispatchTTL is how long nobody dispatches after the process that did was killed.
	dispatchTTL = 5 * time.Second
	// directLeases is how many endpoints a process sends to before it leaves new ones to the sweep of any process.
	directLeases = 512
)

// dispatchState is the state of the loop that dispatches.
type dispatchState struct {
	// held is set while this process has the lease, and checked is when it last tried to acquire or renew it.
	held    bool
	checked time.Time
	// searched is when the accounts with events to dispatch were read.
	searched time.Time
	// failing is set if the last round failed for an endpoint.
	failing bool
}

// follow receives the accounts with new events until ctx ends or the feed fails.
func (d *Dispatcher) follow(ctx context.Context) {
	position, known := int64(0), false
	for ctx.Err() == nil {
		if !known {
			var err error
			if position, err = d.Feed.Position(ctx); err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(dispatchEvery): // dispatch finds them meanwhile
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
			signal(d.newEvents.wake) // dispatch searches
		default:
			position = next.Position
			if d.enabled.Load() {
				accounts := make([]uuid.UUID, len(next.Owners))
				for n, o := range next.Owners {
					accounts[n] = o.AccountID
				}
				d.newEvents.add(accounts)
				signal(d.newEvents.wake)
			}
		}
	}
}

// dispatch runs a round of the accounts whose turn it is, if this process has the lease. Each dispatchEvery, and if no account
// waits, it searches for accounts with events, which finds those whose round failed.
func (d *Dispatcher) dispatch(ctx, work context.Context, state *dispatchState) (more bool, err error) {
	if !d.enabled.Load() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := d.renewDispatchLease(ctx, state); err != nil || !state.held {
		return false, err
	}
	accounts, more := d.newEvents.take()
	if len(accounts) == 0 || time.Since(state.searched) >= dispatchEvery {
		found, err := d.Store.AccountsBehind(ctx)
		if err != nil {
			return false, err
		}
		state.searched = time.Now()
		d.newEvents.add(found)
		if len(accounts) == 0 {
			accounts, more = d.newEvents.take()
		} else {
			more = more || len(found) > 0
		}
	}
	if len(accounts) == 0 {
		return false, nil
	}
	done, err := d.Store.DispatchEvents(ctx, accounts, d.directLease())
	for _, leased := range done.Leased {
		d.start(work, leased)
	}
	d.newEvents.addBacklog(done.Behind)
	if ctx.Err() == nil {
		d.logRound(state, err)
	}
	return more || len(done.Behind) > 0, nil
}

// renewDispatchLease takes or renews the lease, at most once each dispatchEvery.
func (d *Dispatcher) renewDispatchLease(ctx context.Context, state *dispatchState) error {
	if time.Since(state.checked) < dispatchEvery {
		return nil
	}
	state.checked = time.Now()
	held, err := d.Store.AcquireDispatchLease(ctx, Lease{Holder: d.lease.Holder, TTL: dispatchTTL})
	if state.held = held && err == nil; !state.held {
		d.newEvents.clear() // the process that has the lease finds them
		state.searched = time.Time{}
	}
	return err
}

// releaseDispatchLease lets another process dispatch.
func (d *Dispatcher) releaseDispatchLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := d.Store.ReleaseDispatchLease(ctx, d.lease); err != nil {
		d.Log.Warn("the lease of the webhook dispatch is not released; it runs out", "ttl", dispatchTTL.String(), "error", err)
	}
}

// directLease is the lease for endpoints with new deliveries: none if this process has enough of them.
func (d *Dispatcher) directLease() Lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	lease := d.lease
	if len(d.runners) >= directLeases {
		lease.TTL = 0
	}
	return lease
}

// logRound logs the first of several rounds that failed for some endpoint, and the success after them.
func (d *Dispatcher) logRound(state *dispatchState, err error) {
	switch failing := err != nil; {
	case failing && !state.failing:
		d.Log.Warn("events of some webhooks cannot be dispatched; trying again", "retry_every", dispatchEvery.String(), "error", err)
		state.failing = true
	case !failing && state.failing:
		d.Log.Info("events of all webhooks are dispatched again")
		state.failing = false
	}
}

const (
	// roundFresh is how many accounts with news one round dispatches for, and roundBacklog how many of those that had more events
	// than their share: so a replay, or any number of them, holds up no account's news.
	roundFresh, roundBacklog = 50, 5
)

// accountQueue has the accounts with events to dispatch. Those with news, and those whose share of a round was not enough, wait in
// separate lines, each in the order of arrival.
type accountQueue struct {
	// wake starts a round before its time. A round signals nothing itself: what one could not dispatch, the next would find at once.
	wake chan struct{}

	mu             sync.Mutex
	fresh, backlog []uuid.UUID
	queued         map[uuid.UUID]bool
}

func newAccountQueue() *accountQueue {
	return &accountQueue{wake: make(chan struct{}, 1), queued: map[uuid.UUID]bool{}}
}

// add queues accounts with news that do not wait yet.
func (q *accountQueue) add(accounts []uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range accounts {
		if !q.queued[id] {
			q.queued[id] = true
			q.fresh = append(q.fresh, id)
		}
	}
}

// addBacklog queues accounts of the last round that have more events, also if they have news besides.
func (q *accountQueue) addBacklog(accounts []uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range accounts {
		if q.queued[id] {
			q.fresh = slices.DeleteFunc(q.fresh, func(other uuid.UUID) bool { return other == id })
		}
		q.queued[id] = true
		q.backlog = append(q.backlog, id)
	}
}

// take removes the accounts of a round; more is true if others wait.
func (q *accountQueue) take() (accounts []uuid.UUID, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh, backlog := min(roundFresh, len(q.fresh)), min(roundBacklog, len(q.backlog))
	accounts = slices.Concat(q.fresh[:fresh], q.backlog[:backlog])
	q.fresh, q.backlog = slices.Delete(q.fresh, 0, fresh), slices.Delete(q.backlog, 0, backlog)
	for _, id := range accounts {
		delete(q.queued, id)
	}
	return accounts, len(q.fresh)+len(q.backlog) > 0
}

// clear removes all accounts.
func (q *accountQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fresh, q.backlog = nil, nil
	clear(q.queued)
}

// signal wakes the reader of a channel of capacity one.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
