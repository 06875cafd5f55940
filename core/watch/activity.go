package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

const (
	// activitySlack is how much longer than needed a chain is recorded as active. While new intents have the same time to their
	// deadlines, their chain is recorded about once in this time.
	activitySlack = time.Hour
	// activityTimeout bounds one statement, and activityRetry is the pause between two attempts while Postgres is unavailable.
	activityTimeout, activityRetry = 5 * time.Second, time.Second
)

// Activity records which chains new intents may touch, so that the watcher of a chain polls it often. It caches what it has
// recorded: an intent whose chains are recorded for long enough needs no statement. It is safe for concurrent use.
type Activity struct {
	store *intents.Store
	grace time.Duration
	wake  func(caip.ChainID)
	log   *slog.Logger

	mu sync.Mutex
	// written is until when each chain is recorded as active; due are the chains to record.
	written, due map[caip.ChainID]time.Time
	// notEmpty has an element while due is not empty.
	notEmpty chan struct{}
}

// NewActivity returns an Activity that calls wake for each chain that it has recorded. grace is Config.Grace.
func NewActivity(store *intents.Store, grace time.Duration, wake func(caip.ChainID), log *slog.Logger) *Activity {
	return &Activity{
		store: store, grace: grace, wake: wake, log: log, notEmpty: make(chan struct{}, 1),
		written: map[caip.ChainID]time.Time{}, due: map[caip.ChainID]time.Time{},
	}
}

// Created queues the chains of a new intent to be recorded. It does not block.
func (a *Activity) Created(intent *transfer.Intent) {
	needed := intent.Deadline.Add(a.grace)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, chain := range [...]caip.ChainID{intent.Source.Account.Chain, intent.Destination.Account.Chain} {
		if needed.After(a.written[chain]) && needed.After(a.due[chain]) {
			a.due[chain] = needed.Add(activitySlack)
			select {
			case a.notEmpty <- struct{}{}:
			default:
			}
		}
	}
}

// Run records the queued chains, one after the other, until ctx ends; then it records the rest.
func (a *Activity) Run(ctx context.Context) {
	defer func() { _ = a.write(context.WithoutCancel(ctx)) }()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.notEmpty:
		}
		for err := a.write(ctx); err != nil; err = a.write(ctx) {
			if !failing && ctx.Err() == nil {
				failing = true
				a.log.Warn("activity of chains is not recorded; their watchers poll less often", "retry_every", activityRetry.String(), "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(activityRetry):
			}
		}
		failing = false
	}
}

// write records the queued chains, and stops at the first error.
func (a *Activity) write(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for chain, until := range a.due {
		a.mu.Unlock()
		err := a.writeChain(ctx, chain, until)
		a.mu.Lock()
		if err != nil {
			return err
		}
		a.written[chain] = until
		if a.due[chain].Equal(until) {
			delete(a.due, chain)
		}
	}
	return nil
}

func (a *Activity) writeChain(ctx context.Context, chain caip.ChainID, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, activityTimeout)
	defer cancel()
	if err := a.store.KeepActive(ctx, chain, until); err != nil {
		return err
	}
	a.wake(chain)
	return nil
}
