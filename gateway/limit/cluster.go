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
	// nodeIdleTTL is how long a node is kept after its last request: a node that lost its slots must not count in degraded.
	nodeIdleTTL = 2 * time.Second
	// migratingTTL is how long a slot has a batcher of its own, and so how often one that still fails may fail its node's batch.
	migratingTTL = 10 * time.Second
	// maxNodes is more than a Cluster can have.
	maxNodes = 1 << 12
)

// cluster keeps buckets on the nodes of a Redis Cluster. A script cannot span hash slots, so redis_rate itself decides on each
// request, and concurrent requests share a pipeline to the node of their buckets.
//
// Each node has its own batcher and breaker, so that a node that is down or hangs costs only the requests of its own buckets.
type cluster struct {
	client  *redis.ClusterClient
	budget  time.Duration
	metrics metrics
	// nodes are by address; the empty address stands for the node of a slot that is not known yet.
	nodes *otter.Cache[string, *node]
	// migrating are slots on their way to a node that does not answer: they would fail all batches of the node that has them.
	migrating *otter.Cache[uint16, *node]
}

func newCluster(client *redis.ClusterClient, budget time.Duration, m metrics) *cluster {
	return &cluster{
		client: client, budget: budget, metrics: m,
		nodes: otter.Must(&otter.Options[string, *node]{
			MaximumSize: maxNodes, ExpiryCalculator: otter.ExpiryAccessing[string, *node](nodeIdleTTL),
		}),
		migrating: otter.Must(&otter.Options[uint16, *node]{
			MaximumSize: maxNodes, ExpiryCalculator: otter.ExpiryCreating[uint16, *node](migratingTTL),
		}),
	}
}

func (c *cluster) take(span trace.Span, b *bucket, rule redis_rate.Limit) (Decision, error) {
	askedAt := time.Now()
	result, err := c.node(b.key).limiter.Allow(trace.ContextWithSpan(context.Background(), span), strings.TrimPrefix(b.key, bucketPrefix), rule)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: result.Allowed > 0, Rule: rule, Remaining: result.Remaining, ResetAfter: result.ResetAfter}
	if !d.Allowed {
		d.RetryAfter = result.RetryAfter
	}
	// Only a clock that was ahead, such as that of a master before a failover, leaves more than a whole bucket to refill.
	if emissionInterval, burstOffset := gcraParameters(rule); d.ResetAfter > burstOffset+time.Millisecond {
		d.RetryAfter, d.ResetAfter = emissionInterval, burstOffset
		if err := emptyBucket.Run(context.Background(), batchedScripter{c.client, c.node(b.key)}, []string{b.key}, burstOffset.Seconds()).Err(); err != nil {
			return Decision{}, err
		}
	}
	b.update(d, askedAt, time.Since(askedAt))
	return d, nil
}

// node is the one that the key's requests go to.
func (c *cluster) node(key string) *node {
	if c.migrating.EstimatedSize() > 0 {
		if n, ok := c.migrating.GetIfPresent(slot(key)); ok {
			return n
		}
	}
	address := topology.Node(c.client, key)
	if n, ok := c.nodes.GetIfPresent(address); ok {
		return n
	}
	n, _ := c.nodes.SetIfAbsent(address, c.newNode(address != ""))
	return n
}

func (c *cluster) newNode(known bool) *node {
	n := &node{cluster: c, known: known, breaker: newBreaker()}
	n.batcher.run = n.runBatch
	n.limiter = redis_rate.NewLimiter(batchedScripter{c.client, n})
	return n
}

func (c *cluster) degraded() float64 {
	nodes, open := 0.0, 0.0
	for n := range c.nodes.Values() {
		nodes++
		open += openShare(n.breaker)
	}
	return open / max(1, nodes)
}

func (c *cluster) close() {
	c.nodes.StopAllGoroutines()
	c.migrating.StopAllGoroutines()
}

// node sends calls to one node of the Cluster, a pipeline at a time, unless its breaker is open.
type node struct {
	cluster *cluster
	// known is false for the node of a migrating slot, and where the address is not known.
	known   bool
	batcher batcher[*topology.Script]
	breaker *gobreaker.CircuitBreaker[string]
	limiter *redis_rate.Limiter
}

// batchedScripter is the client that redis_rate and scripts run on: it sends their calls in the node's batches.
type batchedScripter struct {
	redis.UniversalClient
	node *node
}

// Eval implements redis.Scripter.
func (s batchedScripter) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.send(ctx, topology.NewScript(ctx, "eval", script, keys, args))
}

// EvalSha implements redis.Scripter.
func (s batchedScripter) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return s.send(ctx, topology.NewScript(ctx, "evalsha", sha1, keys, args))
}

func (s batchedScripter) send(ctx context.Context, call *topology.Script) *redis.Cmd {
	if _, err := s.node.batcher.do(trace.SpanFromContext(ctx), call); err != nil {
		call.SetErr(err)
	}
	return call.Cmd
}

// runBatch sends a batch of calls within the budget, unless the breaker is open. A node that answered any of the calls works,
// a redirect included; the calls without an answer fail alone.
func (n *node) runBatch(batch []*pending[*topology.Script]) error {
	n.cluster.metrics.batch.Observe(float64(len(batch)))
	_, err := n.breaker.Execute(func() (string, error) { return "", n.pipeline(batch) })
	n.cluster.metrics.countCall(err)
	return err
}

func (n *node) pipeline(batch []*pending[*topology.Script]) error {
	c := n.cluster
	ctx, cancel := context.WithTimeout(context.Background(), c.budget)
	defer cancel()
	pipe := c.client.Pipeline()
	for _, p := range batch {
		_ = pipe.Process(ctx, p.item) // which only queues it
	}
	askedAt, span := time.Now(), startBatchSpan("PIPELINE", batch)
	_, err := pipe.Exec(ctx)
	endBatchSpan(span, err)
	if err == nil {
		c.metrics.roundTrip.Observe(time.Since(askedAt).Seconds())
		for _, p := range batch {
			p.done = true
		}
		return nil
	}
	works, all := false, true
	for _, p := range batch {
		switch p.done = isAnswered(p.item); {
		case p.done:
			works = true
			continue
		case n.known && p.item.Redirected():
			works = true
			c.migrating.SetIfAbsent(slot(p.item.Key()), c.newNode(false))
		}
		all, p.err = false, p.item.Err()
	}
	if !all {
		// A replica may have taken the place of a node that is down.
		topology.Reload(c.client)
	}
	if works {
		return nil
	}
	return err
}

// isAnswered reports whether a call was answered, NOSCRIPT included. go-redis may set an error on a call that was answered
// before: the deadline's, where it ended while other calls of the pipeline were redirected.
func isAnswered(call *topology.Script) bool {
	if call.Val() != nil {
		call.SetErr(nil)
		return true
	}
	return redis.HasErrorPrefix(call.Err(), "NOSCRIPT")
}
