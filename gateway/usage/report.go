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
			for r.deliver(ctx, reportRows) {
				sleep(ctx, r.pause(time.Now()))
			}
		case <-ctx.Done():
			return
		}
	}
}

// pause is the time until the next report. The rows of past minutes are spread over the current minute. Those of the current
// minute follow, one report an interval: a few are reported soon, and of many most take in the minute's further counts first. There
// is no pause once the backlog is half full.
func (r *Recorder) pause(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := now.UTC().Truncate(time.Minute)
	reports := (r.backlog.rowsBefore(minute) + reportRows - 1) / reportRows
	switch {
	case r.backlog.rows > r.capacity/2:
		return 0
	case reports == 0:
		return r.interval
	}
	return min(r.interval, minute.Add(time.Minute).Sub(now)/time.Duration(reports))
}

// deliver sends the report in flight, or else one of up to n rows of the backlog, until core has answered it. It returns false if
// there is none or ctx ends; a report that was not answered stays in flight.
func (r *Recorder) deliver(ctx context.Context, n int) bool {
	wait := minRetry
	for ctx.Err() == nil && r.nextReport(n) {
		attempt, cancel := context.WithTimeout(ctx, reportTimeout)
		err := r.report(attempt, *r.inFlight)
		cancel()
		switch {
		case err == nil:
			r.metrics.sent.Inc()
		case errors.Is(err, control.ErrReportRefused):
			r.metrics.refused.Inc()
			r.metrics.dropped.Add(float64(len(r.inFlight.Keys)))
			r.log.ErrorContext(ctx, "usage report refused, its counts are lost", "error", err)
		case ctx.Err() != nil:
			return false
		default:
			r.metrics.failed.Inc()
			if wait == minRetry {
				r.log.WarnContext(ctx, "usage not reported, it is kept and tried again", "error", err)
			}
			sleep(ctx, wait)
			wait = min(2*wait, maxRetry)
			continue
		}
		r.inFlight = nil
		if wait != minRetry {
			r.log.InfoContext(ctx, "usage reported again")
		}
		return true
	}
	return false
}

// nextReport ensures that a report is in flight, a new one with up to n rows, and returns false for an empty backlog.
func (r *Recorder) nextReport(n int) bool {
	if r.inFlight != nil {
		return true
	}
	r.mu.Lock()
	rows := r.backlog.takeOldest(n)
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
