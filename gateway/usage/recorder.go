// Package usage counts what the gateway did with the requests of each key and reports the counts to core.
//
// It owns the counters, the minute a request is counted in, and the reports: each is sent, unchanged, until core has
// answered it, so that core can store it exactly once. Nothing here may slow a request down or fail it: counting is a
// few atomic operations, and what core cannot be told in time is dropped in the end, and counted as that.
package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/wire"
)

// lastFlush bounds the reporting after Run's context has ended.
const lastFlush = 3 * time.Second

// Options are the recorder's settings; all must be set.
type Options struct {
	// Report tells core. It must respect its context; an error that is control.ErrReportRefused ends the report, any other
	// has it sent again.
	Report func(context.Context, wire.UsageReport) error
	// Interval is how often the counts are gathered and reported; a second to a minute.
	Interval time.Duration
	// Backlog bounds the rows, one for each key and minute, that wait while core does not answer; one takes about 200
	// bytes. The oldest are dropped beyond it.
	Backlog int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Recorder is safe for concurrent use. What it counts is reported by Run.
type Recorder struct {
	report   func(context.Context, wire.UsageReport) error
	interval time.Duration
	capacity int

	touched stack

	// mu guards what follows it.
	mu      sync.Mutex
	waiting backlog
	// since is when the counters were gathered last.
	since time.Time

	// gathered tells the sender that rows wait.
	gathered chan struct{}
	// underway is the report that core has not answered yet; it belongs to the sender.
	underway *wire.UsageReport

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
		r.touched.push(c)
	}
}

// Run gathers and reports until ctx ends; then it reports what is left, for 3 s at most. Every request must have been
// counted before that.
func (r *Recorder) Run(ctx context.Context) {
	var sender sync.WaitGroup
	sender.Go(func() { r.send(ctx) })
	for ctx.Err() == nil {
		pause(ctx, time.Until(r.next(time.Now())))
		r.gather(time.Now())
	}
	sender.Wait()
	r.gather(time.Now())
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	r.deliver(last)
	r.tellLost(last)
}

// next is when to gather: at whole intervals of the clock and at the end of every minute, so that what is gathered
// belongs to one minute, but for the requests between its end and the timer's.
func (r *Recorder) next(now time.Time) time.Time {
	at, end := now.Truncate(r.interval).Add(r.interval), now.Truncate(time.Minute).Add(time.Minute)
	if end.Before(at) {
		return end
	}
	return at
}

// gather moves what was counted since the last time into the backlog, under the minute in which that was.
func (r *Recorder) gather(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.since.UTC().Truncate(time.Minute)
	r.since = now
	for c := r.touched.takeAll(); c != nil; {
		next := c.next
		if t := c.take(); !t.empty() {
			r.waiting.add(at, c.keyID, t)
		}
		c = next
	}
	if excess := r.waiting.rows - r.capacity; excess > 0 {
		r.metrics.dropped.Add(float64(len(r.waiting.takeOldest(excess))))
	}
	r.metrics.waiting.Set(float64(r.waiting.rows))
	if r.waiting.rows > 0 {
		select {
		case r.gathered <- struct{}{}:
		default:
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
