// Package usage counts how the gateway handled the requests of each key and reports the counts to core.
//
// It owns the counters, the minute in which a request is counted, and the reports. Each report is resent unchanged until core has
// answered it, so that core can store it exactly once. Counting is a few atomic operations and never fails a request; rows beyond
// the backlog are dropped and counted as dropped.
package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/wire"
)

// lastFlush bounds the final reports, after Run's context has ended.
const lastFlush = 3 * time.Second

// Options are the recorder's settings; all must be set.
type Options struct {
	// Report sends a report to core and respects its context. control.ErrReportRefused drops the report; after any other error
	// it is sent again.
	Report func(context.Context, wire.UsageReport) error
	// Interval is how often the counts are gathered, and those of reportRows keys reported, a second to a minute.
	Interval time.Duration
	// Backlog bounds the rows that wait to be reported, one for each key and minute, about 200 bytes each. Beyond it the oldest
	// are dropped.
	Backlog int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Recorder is safe for concurrent use. Run reports what it counts.
type Recorder struct {
	report   func(context.Context, wire.UsageReport) error
	interval time.Duration
	capacity int

	dirty stack

	// mu guards the fields below.
	mu      sync.Mutex
	backlog backlog
	// since is the time of the last gather.
	since time.Time

	// gathered wakes the sender.
	gathered chan struct{}
	// inFlight is the report that core has not answered; it belongs to the sender.
	inFlight *wire.UsageReport

	log     *slog.Logger
	metrics metrics
}

// New makes a recorder. Requests may be counted before Run.
func New(o Options) *Recorder {
	return &Recorder{
		report:   o.Report,
		interval: o.Interval,
		capacity: o.Backlog,
		since:    time.Now(),
		gathered: make(chan struct{}, 1),
		log:      o.Log,
		metrics:  newMetrics(o.Metrics, o.Backlog),
	}
}

// Count counts one request that arrived at the given time.
func (r *Recorder) Count(c *Counter, kind Kind, at time.Time) {
	if c.add(kind, at) {
		r.dirty.push(c)
	}
}

// Run gathers and reports until ctx ends, and then reports the rest within lastFlush. No request may be counted after ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	var sender sync.WaitGroup
	sender.Go(func() { r.send(ctx) })
	for ctx.Err() == nil {
		sleep(ctx, time.Until(r.nextGather(time.Now())))
		r.gather(time.Now())
	}
	sender.Wait()
	r.gather(time.Now())
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	for r.deliver(last, wire.MaxUsageRows) {
	}
	r.logLost(last)
}

// nextGather returns the next multiple of the interval or the end of the minute. So one gather belongs to one minute, except for
// requests between the minute's end and the timer.
func (r *Recorder) nextGather(now time.Time) time.Time {
	at, end := now.Truncate(r.interval).Add(r.interval), now.Truncate(time.Minute).Add(time.Minute)
	if end.Before(at) {
		return end
	}
	return at
}

// gather moves the counts since the last gather into the backlog, under the minute of that gather.
func (r *Recorder) gather(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.since.UTC().Truncate(time.Minute)
	r.since = now
	for c := r.dirty.takeAll(); c != nil; {
		next := c.next
		if t := c.take(); !t.isZero() {
			r.backlog.add(at, c.keyID, t)
		}
		c = next
	}
	if excess := r.backlog.rows - r.capacity; excess > 0 {
		r.metrics.dropped.Add(float64(len(r.backlog.takeOldest(excess))))
	}
	r.metrics.waiting.Set(float64(r.backlog.rows))
	if r.backlog.rows > 0 {
		select {
		case r.gathered <- struct{}{}:
		default:
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
