package webhooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
)

// batch calls work with the waiting items, at most size at once, until in is closed, and at the earliest batchEvery after the
// previous call. Many runners need few statements this way, and a single one does not wait.
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

// load requests due deliveries of an endpoint.
type load struct {
	Claim
	reply chan<- loaded
}

// loaded has no endpoint if nothing may be sent to it any more.
type loaded struct {
	due DueDeliveries
	err error
}

// runLoads reads what loads request. If that fails for a reason of one of them, it reads each for itself.
func (d *Dispatcher) runLoads(ctx context.Context, all []load) {
	claims := make([]Claim, len(all))
	for n, l := range all {
		claims[n] = l.Claim
	}
	due, err := d.readDue(ctx, claims)
	if err != nil && len(all) > 1 && ctx.Err() == nil && !postgres.Unavailable(err) {
		for n := range all {
			d.runLoads(ctx, all[n:n+1])
		}
		return
	}
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("due webhook deliveries cannot be read; trying again", "webhook_id", all[0].WebhookID, "webhooks", len(all),
			"retry_every", leaseTTL.String(), "error", err)
	}
	for _, l := range all {
		l.reply <- loaded{due[l.WebhookID], err}
	}
}

func (d *Dispatcher) readDue(ctx context.Context, claims []Claim) (map[uuid.UUID]DueDeliveries, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return d.Store.DueDeliveries(ctx, d.lease, claims)
}

// resultWrite requests that the result of an attempt is written, and receives whether it was.
type resultWrite struct {
	AttemptRecord
	written chan<- bool
}

const (
	// resultRetry is the pause before results that the database did not accept are written again.
	resultRetry = time.Second
	// busyRetry is that for results of endpoints that another transaction has locked.
	busyRetry = 100 * time.Millisecond
)

// writeResults writes results. While the database is unavailable it retries until ctx ends; events whose results are not written
// are sent again. Results of endpoints that are locked are written later, and delay no others.
func (d *Dispatcher) writeResults(ctx context.Context, all []resultWrite) {
	records := make([]AttemptRecord, len(all))
	for n, r := range all {
		records[n] = r.AttemptRecord
	}
	recorded, err := d.recordAttempts(ctx, records)
	for warned := false; err != nil && ctx.Err() == nil && postgres.Unavailable(err); {
		if !warned {
			d.Log.Warn("outcomes of webhook attempts cannot be written; trying again", "retry_every", resultRetry.String(), "error", err)
			warned = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(resultRetry):
			recorded, err = d.recordAttempts(ctx, records)
		}
	}
	if lost := errors.Join(err, recorded.Err); lost != nil {
		d.Log.Error("outcomes of webhook attempts are lost; the attempts are made again", "attempts", len(all), "error", lost)
	}
	d.announceDisabled(recorded.Disabled)
	for n, r := range all {
		if err == nil && slices.Contains(recorded.Busy, n) && ctx.Err() == nil {
			time.AfterFunc(busyRetry, func() { d.results <- r }) // its runner runs until it is written, and d.results is open until then
			continue
		}
		r.written <- err == nil && !slices.Contains(recorded.Busy, n) && !slices.Contains(recorded.Lost, n)
	}
}

func (d *Dispatcher) recordAttempts(ctx context.Context, records []AttemptRecord) (Recorded, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return d.Store.RecordAttempts(ctx, records, d.MailQueued != nil)
}

// announceDisabled has the events and the mails about endpoints that attempts have disabled sent.
func (d *Dispatcher) announceDisabled(reasons []Reason) {
	for _, reason := range reasons {
		d.metrics.disabled.WithLabelValues(string(reason)).Inc()
	}
	if len(reasons) == 0 {
		return
	}
	signal(d.newEvents.wake) // the events are for the accounts' other endpoints
	if d.MailQueued != nil {
		d.MailQueued()
	}
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
