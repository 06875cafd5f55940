package usage

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/control"
	"intents.internal/pkg/wire"
)

const (
	// reportTimeout bounds one attempt. It is longer than core's own deadline, so that core says itself what failed.
	reportTimeout = 8 * time.Second
	// firstRetry and slowestRetry are the pauses after failed attempts, doubled each time.
	firstRetry   = 100 * time.Millisecond
	slowestRetry = 5 * time.Second
	// reportRows is how many rows a report has at most. Core may be asked for more at once, but whoever asks for anything else
	// there waits meanwhile: 1,000 take it 10 ms.
	reportRows = 200
)

// send reports what was gathered, until ctx ends. All replicas gather at the same instants; each reports a little later,
// at a time of its own, so that core is not asked by all at once.
func (r *Recorder) send(ctx context.Context) {
	apart := rand.N(r.interval / 4) //nolint:gosec // nobody gains by guessing it
	for {
		select {
		case <-r.gathered:
			pause(ctx, apart)
			r.deliver(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// deliver reports until nothing waits or ctx ends. A report that was not answered stays under way.
func (r *Recorder) deliver(ctx context.Context) {
	wait := firstRetry
	for ctx.Err() == nil && r.compose() {
		attempt, cancel := context.WithTimeout(ctx, reportTimeout)
		err := r.report(attempt, *r.underway)
		cancel()
		switch {
		case err == nil:
			r.metrics.sent.Inc()
			r.answered(ctx, &wait)
		case errors.Is(err, control.ErrReportRefused):
			r.metrics.refused.Inc()
			r.metrics.dropped.Add(float64(len(r.underway.Keys)))
			r.log.ErrorContext(ctx, "usage report refused, its counts are lost", "error", err)
			r.answered(ctx, &wait)
		case ctx.Err() != nil:
			return
		default:
			r.metrics.failed.Inc()
			if wait == firstRetry {
				r.log.WarnContext(ctx, "usage not reported, it is kept and tried again", "error", err)
			}
			pause(ctx, wait)
			wait = min(2*wait, slowestRetry)
		}
	}
}

// answered ends the report under way, and the log's tale of an outage.
func (r *Recorder) answered(ctx context.Context, wait *time.Duration) {
	r.underway = nil
	if *wait != firstRetry {
		*wait = firstRetry
		r.log.InfoContext(ctx, "usage reported again")
	}
}

// compose sees to it that a report is under way, and returns false where nothing waits.
func (r *Recorder) compose() bool {
	if r.underway != nil {
		return true
	}
	r.mu.Lock()
	rows := r.waiting.takeOldest(reportRows)
	r.metrics.waiting.Set(float64(r.waiting.rows))
	r.mu.Unlock()
	if len(rows) == 0 {
		return false
	}
	r.underway = &wire.UsageReport{ReportID: uuid.Must(uuid.NewV7()).String(), Keys: rows}
	return true
}

// tellLost says what could not be reported before the end.
func (r *Recorder) tellLost(ctx context.Context) {
	r.mu.Lock()
	lost := r.waiting.rows
	r.mu.Unlock()
	if r.underway != nil {
		lost += len(r.underway.Keys)
	}
	if lost > 0 {
		r.log.WarnContext(ctx, "usage not reported at the end, its counts are lost", "rows", lost)
	}
}
