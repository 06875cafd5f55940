package limit

import (
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/go-redis/redis_rate/v10"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/topology"
	"intents.internal/pkg/tracing"
)

// maxBatch bounds the buckets of one script call, and so how long Redis is busy with nothing else.
const maxBatch = 256

var errLeaderLost = errors.New("the request that asked redis for this one has failed")

// request is one request of a bucket on its way to Redis, or one call where calls are what is shared.
type request struct {
	bucket *bucket
	rule   redis_rate.Limit
	call   *topology.Script
	// turn is signalled once: with the outcome in place, or to say that this request leads the next batch.
	turn  chan struct{}
	leads bool

	decided  bool
	decision Decision
	err      error

	// span is the request's, shared that of the call it has its part in.
	span, shared trace.Span
}

// combiner lets concurrent requests share calls without a timer and without a goroutine of its own (flat combining): the
// one that finds nobody on the way to Redis leads, and asks for all who have come by then; whoever comes meanwhile waits,
// and the first of them leads next. Under load batches grow by themselves; a lone request waits for nobody.
type combiner struct {
	// ask decides a batch. After an error the requests that it had not decided share that error.
	ask func([]*request) error

	mu      sync.Mutex
	waiting []*request
	led     bool
	// batch is the leader's.
	batch []*request
	idle  sync.Pool
}

// decide has one request decided, by this call or by that of another.
func (c *combiner) decide(span trace.Span, b *bucket, rule redis_rate.Limit) (Decision, error) {
	r := c.take()
	r.span, r.bucket, r.rule = span, b, rule
	c.join(r)
	tracing.Link(span, r.shared)
	d, err := r.decision, r.err
	c.put(r)
	return d, err
}

// send has one call sent, by this one or by another.
func (c *combiner) send(span trace.Span, call *topology.Script) error {
	r := c.take()
	r.span, r.call = span, call
	c.join(r)
	tracing.Link(span, r.shared)
	err := r.err
	c.put(r)
	return err
}

func (c *combiner) take() *request {
	if r, ok := c.idle.Get().(*request); ok {
		return r
	}
	return &request{turn: make(chan struct{}, 1)}
}

func (c *combiner) put(r *request) {
	*r = request{turn: r.turn}
	c.idle.Put(r)
}

// join returns when the request has been in a batch.
func (c *combiner) join(r *request) {
	if c.enqueue(r) {
		c.lead(r)
	} else if <-r.turn; r.leads {
		c.lead(r)
	}
}

// enqueue tells whether the request is to lead at once.
func (c *combiner) enqueue(r *request) (leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	leads = !c.led
	c.led = true
	return leads
}

// lead asks for a batch that holds the leader's own request, and hands the lead on.
func (c *combiner) lead(own *request) {
	// Requests that are ready to run join now instead of waiting for the next round trip.
	runtime.Gosched()
	runtime.Gosched()
	c.mu.Lock()
	n := min(len(c.waiting), maxBatch)
	c.batch = append(c.batch[:0], c.waiting[:n]...)
	c.waiting = slices.Delete(c.waiting, 0, n)
	c.mu.Unlock()

	err := errLeaderLost
	defer func() { c.handOn(own, err) }() // also where ask panics, or everybody would wait for ever
	err = c.ask(c.batch)
}

// handOn tells the batch what became of it and makes the first of those who wait the next leader.
func (c *combiner) handOn(own *request, err error) {
	c.settle(c.batch, own, err)

	c.mu.Lock()
	if err != nil {
		// Whoever waited behind a Redis that failed has waited enough; asking again would double their wait.
		behind := slices.Clone(c.waiting)
		c.waiting = slices.Delete(c.waiting, 0, len(c.waiting))
		c.led = false
		c.mu.Unlock()
		c.settle(behind, nil, err)
		return
	}
	if len(c.waiting) == 0 {
		c.led = false
		c.mu.Unlock()
		return
	}
	next := c.waiting[0]
	next.leads = true
	c.mu.Unlock()
	next.turn <- struct{}{}
}

// settle tells a batch what became of it.
func (c *combiner) settle(batch []*request, own *request, err error) {
	for _, r := range batch {
		if err != nil && !r.decided {
			r.err = err
		}
		if r != own {
			r.turn <- struct{}{}
		}
	}
}
