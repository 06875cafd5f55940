package limit

import (
	"context"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/topology"
)

const (
	// forgetAfter is how long a lane outlives its last request: a node that has lost its slots is no part of what is away.
	forgetAfter = 2 * time.Second
	// apartFor is how long a slot has a lane of its own, and so how often one that still fails may hold up its node's lane.
	apartFor = 10 * time.Second
	// maxLanes is more nodes than a Cluster can have.
	maxLanes = 1 << 12
)

// cluster keeps buckets on the nodes of a Redis Cluster. A script cannot span its slots, so redis_rate itself decides on each
// request, and what concurrent requests share is a pipeline to the node that holds their buckets.
//
// Each node has a lane of its own, so that one which is down or hangs costs only the requests of its own buckets.
type cluster struct {
	client  *redis.ClusterClient
	budget  time.Duration
	metrics metrics
	// lanes are by the address of the node; by none while nobody knows yet which node holds what.
	lanes *otter.Cache[string, *lane]
	// apart are the lanes of slots on their way from the node that has them to another, which does not answer: they would hold
	// up all batches of the first.
	apart *otter.Cache[uint16, *lane]
}

func newCluster(client *redis.ClusterClient, budget time.Duration, m metrics) *cluster {
	return &cluster{
		client: client, budget: budget, metrics: m,
		lanes: otter.Must(&otter.Options[string, *lane]{
			MaximumSize: maxLanes, ExpiryCalculator: otter.ExpiryAccessing[string, *lane](forgetAfter),
		}),
		apart: otter.Must(&otter.Options[uint16, *lane]{
			MaximumSize: maxLanes, ExpiryCalculator: otter.ExpiryCreating[uint16, *lane](apartFor),
		}),
	}
}

func (c *cluster) decide(span trace.Span, own *bucket, rule redis_rate.Limit) (Decision, error) {
	asked := time.Now()
	result, err := c.lane(own.key).limiter.Allow(trace.ContextWithSpan(context.Background(), span), strings.TrimPrefix(own.key, bucketPrefix), rule)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: result.Allowed > 0, Rule: rule, Remaining: result.Remaining, ResetAfter: result.ResetAfter}
	if !d.Allowed {
		d.RetryAfter = result.RetryAfter
	}
	// Only a clock that was ahead, such as that of a master before a failover, leaves more than a whole bucket to wait for.
	if interval, size := dimensions(rule); d.ResetAfter > size+time.Millisecond {
		d.RetryAfter, d.ResetAfter = interval, size
		if err := empty.Run(context.Background(), calls{c.client, c.lane(own.key)}, []string{own.key}, size.Seconds()).Err(); err != nil {
			return Decision{}, err
		}
	}
	own.tell(d, asked, time.Now())
	return d, nil
}

// lane is the way of a key's requests.
func (c *cluster) lane(key string) *lane {
	if c.apart.EstimatedSize() > 0 {
		if apart, is := c.apart.GetIfPresent(slot(key)); is {
			return apart
		}
	}
	node := topology.Node(c.client, key)
	if held, is := c.lanes.GetIfPresent(node); is {
		return held
	}
	held, _ := c.lanes.SetIfAbsent(node, c.newLane(node != ""))
	return held
}

func (c *cluster) newLane(shared bool) *lane {
	l := &lane{cluster: c, shared: shared, breaker: newBreaker()}
	l.combiner.ask = l.ask
	l.limiter = redis_rate.NewLimiter(calls{c.client, l})
	return l
}

func (c *cluster) away() float64 {
	lanes, away := 0.0, 0.0
	for l := range c.lanes.Values() {
		lanes++
		away += breakerAway(l.breaker)
	}
	return away / max(1, lanes)
}

func (c *cluster) close() {
	c.lanes.StopAllGoroutines()
	c.apart.StopAllGoroutines()
}

// lane takes calls to one node, a batch at a time, unless the node fails.
type lane struct {
	cluster *cluster
	// shared is a lane whose keys are of many slots and of one node.
	shared   bool
	combiner combiner
	breaker  *gobreaker.CircuitBreaker[string]
	limiter  *redis_rate.Limiter
}

// calls is what redis_rate and scripts run on: their calls join the lane's batches.
type calls struct {
	redis.UniversalClient
	lane *lane
}

// Eval implements redis.Scripter.
func (c calls) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, topology.NewScript(ctx, "eval", script, keys, args))
}

// EvalSha implements redis.Scripter.
func (c calls) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, topology.NewScript(ctx, "evalsha", sha1, keys, args))
}

func (c calls) send(ctx context.Context, call *topology.Script) *redis.Cmd {
	if err := c.lane.combiner.send(trace.SpanFromContext(ctx), call); err != nil {
		call.SetErr(err)
	}
	return call.Cmd
}

// ask sends a batch of calls within the budget, unless the breaker keeps it from the node. Where the node has answered any of
// them it works, if only that another is to be asked, and those that have no answer fail alone.
func (l *lane) ask(batch []*request) error {
	l.cluster.metrics.batch.Observe(float64(len(batch)))
	_, err := l.breaker.Execute(func() (string, error) { return "", l.send(batch) })
	return err
}

func (l *lane) send(batch []*request) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.cluster.budget)
	defer cancel()
	pipe := l.cluster.client.Pipeline()
	for _, r := range batch {
		_ = pipe.Process(ctx, r.call) // which only queues it
	}
	asked, span := time.Now(), startCall("PIPELINE", batch)
	_, err := pipe.Exec(ctx)
	endCall(span, err)
	if err == nil {
		l.cluster.metrics.roundTrip.Observe(time.Since(asked).Seconds())
		for _, r := range batch {
			r.decided = true
		}
		return nil
	}
	works, all := false, true
	for _, r := range batch {
		switch r.decided = answer(r.call); {
		case r.decided:
			works = true
			continue
		case l.shared && r.call.Redirected():
			works = true
			l.cluster.apart.SetIfAbsent(slot(r.call.Key()), l.cluster.newLane(false))
		}
		all, r.err = false, r.call.Err()
	}
	if !all {
		// A replica may have taken the place of a node that is gone.
		topology.Reload(l.cluster.client)
	}
	if works {
		return nil
	}
	return err
}

// answer tells whether a call was answered, if only that the script is not known. go-redis may note an error over an answer
// that came before: where the time ended while others of the pipeline were sent on.
func answer(call *topology.Script) bool {
	if call.Val() != nil {
		call.SetErr(nil)
		return true
	}
	return redis.HasErrorPrefix(call.Err(), "NOSCRIPT")
}
