package delivery

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/webhook"
)

// batch calls work with the waiting items, at most size at once, until in is closed, and at the earliest batchEvery after the
// previous call. So many runners need few statements, and a single one does not wait.
func batch[T any](in <-chan T, size int, work func([]T)) {
	var last time.Time
	for first := range in {
		time.Sleep(batchEvery - time.Since(last))
		last = time.Now()
		all := []T{first}
		for more := true; more && len(all) < size; {
			select {
			case next, open := <-in:
				if more = open; open {
					all = append(all, next)
				}
			default:
				more = false
			}
		}
		work(all)
	}
}

// load requests the due deliveries of an endpoint.
type load struct {
	id    uuid.UUID
	reply chan<- loaded
}

// loaded has no endpoint if nothing may be sent to it any more.
type loaded struct {
	due postgres.DueDeliveries
	err error
}

func (d *Dispatcher) runLoads(ctx context.Context, all []load) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	ids := make([]uuid.UUID, len(all))
	for n, l := range all {
		ids[n] = l.id
	}
	due, err := d.Store.DueDeliveries(ctx, d.lease, ids, perLoad)
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("due webhook deliveries cannot be read; trying again", "retry_every", leaseTTL.String(), "error", err)
	}
	for _, l := range all {
		l.reply <- loaded{due[l.id], err}
	}
}

// record requests that the result of an attempt is written, and receives whether it was.
type record struct {
	postgres.AttemptRecord
	written chan<- bool
}

// recordRetry is the pause before results that the database did not accept are written again.
const recordRetry = time.Second

// writeRecords writes results. While the database is unavailable it retries until ctx ends; events whose results are not written
// are sent again.
func (d *Dispatcher) writeRecords(ctx context.Context, all []record) {
	outcomes := make([]postgres.AttemptRecord, len(all))
	for n, r := range all {
		outcomes[n] = r.AttemptRecord
	}
	var disabled []webhook.Reason
	err := d.writeOutcomes(ctx, outcomes, &disabled)
	for warned := false; err != nil && ctx.Err() == nil && postgres.Unavailable(err); {
		if !warned {
			d.Log.Warn("outcomes of webhook attempts cannot be written; trying again", "retry_every", recordRetry.String(), "error", err)
			warned = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(recordRetry):
			err = d.writeOutcomes(ctx, outcomes, &disabled)
		}
	}
	if err != nil {
		d.Log.Error("outcomes of webhook attempts are lost; the attempts are made again", "attempts", len(all), "error", err)
	}
	for _, reason := range disabled {
		d.metrics.disabled.WithLabelValues(string(reason)).Inc()
	}
	if len(disabled) > 0 {
		signal(d.newEvents.wake) // the events are for the accounts' other endpoints
	}
	for _, r := range all {
		r.written <- err == nil
	}
}

func (d *Dispatcher) writeOutcomes(ctx context.Context, outcomes []postgres.AttemptRecord, disabled *[]webhook.Reason) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	reasons, err := d.Store.RecordAttempts(ctx, outcomes)
	*disabled = append(*disabled, reasons...)
	return err
}

// release requests that a lease is released, if always is false only if nothing is due, and receives whether it was.
type release struct {
	id       uuid.UUID
	always   bool
	released chan<- bool
}

func (d *Dispatcher) writeReleases(ctx context.Context, all []release) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var always, idle []uuid.UUID
	for _, r := range all {
		if r.always {
			always = append(always, r.id)
		} else {
			idle = append(idle, r.id)
		}
	}
	kept, err := d.Store.ReleaseIdleLeases(ctx, d.lease, idle)
	if err = errors.Join(err, d.Store.ReleaseLeases(ctx, d.lease, always)); err != nil && ctx.Err() == nil {
		d.Log.Warn("leases of webhooks are not released; they run out", "leases", len(all), "error", err)
	}
	for _, r := range all {
		r.released <- r.always || !slices.Contains(kept, r.id)
	}
}
