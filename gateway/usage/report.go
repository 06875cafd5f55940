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
	// reportTimeout bounds one attempt. It is longer than core's deadline, so that core reports its own failure.
	reportTimeout = 8 * time.Second
	// minRetry and maxRetry bound the pause after failed attempts, which doubles each time.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
	// reportRows bounds the rows of a report. Core accepts more, but its other requests would wait: 1,000 rows take 10 ms.
	reportRows = 200
)

// send reports the gathered counts until ctx ends. All replicas gather at the same time; each reports after a random delay, so
// that the reports to core are spread over time.
func (r *Recorder) send(ctx context.Context) {
	delay := rand.N(r.interval / 4) //nolint:gosec // not a secret
	for {
		select {
		case <-r.gathered:
			sleep(ctx, delay)
			r.deliver(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends reports until the backlog is empty or ctx ends. A report that was not answered stays in flight.
func (r *Recorder) deliver(ctx context.Context) {
	wait := minRetry
	for ctx.Err() == nil && r.nextReport() {
		attempt, cancel := context.WithTimeout(ctx, reportTimeout)
		err := r.report(attempt, *r.inFlight)
		cancel()
		switch {
		case err == nil:
			r.metrics.sent.Inc()
			r.reported(ctx, &wait)
		case errors.Is(err, control.ErrReportRefused):
			r.metrics.refused.Inc()
			r.metrics.dropped.Add(float64(len(r.inFlight.Keys)))
			r.log.ErrorContext(ctx, "usage report refused, its counts are lost", "error", err)
			r.reported(ctx, &wait)
		case ctx.Err() != nil:
			return
		default:
			r.metrics.failed.Inc()
			if wait == minRetry {
				r.log.WarnContext(ctx, "usage not reported, it is kept and tried again", "error", err)
			}
			sleep(ctx, wait)
			wait = min(2*wait, maxRetry)
		}
	}
}

// reported removes the report in flight, and logs the recovery after an outage.
func (r *Recorder) reported(ctx context.Context, wait *time.Duration) {
	r.inFlight = nil
	if *wait != minRetry {
		*wait = minRetry
		r.log.InfoContext(ctx, "usage reported again")
	}
}

// nextReport ensures that a report is in flight, and returns false for an empty backlog.
func (r *Recorder) nextReport() bool {
	if r.inFlight != nil {
		return true
	}
	r.mu.Lock()
	rows := r.backlog.takeOldest(reportRows)
	r.metrics.waiting.Set(float64(r.backlog.rows))
	r.mu.Unlock()
	if len(rows) == 0 {
		return false
	}
	r.inFlight = &wire.UsageReport{ReportID: uuid.Must(uuid.NewV7()).String(), Keys: rows}
	return true
}

// logLost logs the rows that were not reported before the end.
func (r *Recorder) logLost(ctx context.Context) {
	r.mu.Lock()
	lost := r.backlog.rows
	r.mu.Unlock()
	if r.inFlight != nil {
		lost += len(r.inFlight.Keys)
	}
	if lost > 0 {
		r.log.WarnContext(ctx, "usage not reported at the end, its counts are lost", "rows", lost)
	}
}
