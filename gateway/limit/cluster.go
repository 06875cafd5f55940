package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/topology"
)

const (
	// nodeIdleTTL is how long a node is kept after its last request: degraded must not count a node that lost its slots.
	nodeIdleTTL = 2 * time.Second
	// migratingTTL is how long a slot has its own batcher, and so how often a slot that still fails may fail its node's batch.
	migratingTTL = 10 * time.Second
	// maxNodes is above the limit of a Redis Cluster.
	maxNodes = 1 << 12
)

// cluster keeps buckets on the nodes of a Redis Cluster. A script cannot span hash slots, so each account has its own call, and
// concurrent calls share a pipeline to the node of their accounts.
//
// Each node has its own batcher and circuit breaker, so that a node that is down or hangs affects only the requests of its own
// accounts.
type cluster struct {
	client  *redis.ClusterClient
	budget  time.Duration
	metrics metrics
	// nodes are by address; the empty address is the node of slots whose node is unknown.
	nodes *otter.Cache[string, *node]
	// migrating are slots that are being moved to a node that does not respond: they would fail all batches of the node that
	// still has them.
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

func (c *cluster) take(r request) (Decision, error) {
	t, err := c.node(tokenbucket.AccountHash(r.account.name)).batcher.do(tokenTake{request: r})
	return t.decision, err
}

// node returns the node for the requests of the account with this hash.
func (c *cluster) node(hash string) *node {
	if c.migrating.EstimatedSize() > 0 {
		if n, ok := c.migrating.GetIfPresent(slot(hash)); ok {
			return n
		}
	}
	address := topology.Node(c.client, hash)
	if n, ok := c.nodes.GetIfPresent(address); ok {
		return n
	}
	n, _ := c.nodes.SetIfAbsent(address, c.newNode(address != ""))
	return n
}

func (c *cluster) newNode(known bool) *node {
	n := &node{cluster: c, known: known, breaker: newBreaker()}
	n.batcher.run = n.runBatch
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

// node sends calls to one node of the Cluster, one pipeline at a time, unless its breaker is open.
type node struct {
	cluster *cluster
	// known is false for the node of a migrating slot, and if the address is unknown.
	known   bool
	batcher batcher[tokenTake]
	breaker *gobreaker.CircuitBreaker[string]
	// tokens is used only by the leader.
	tokens tokenbucket.Call
}

// accountCall is the call for requests of one account that have the same rules and cost.
type accountCall struct {
	batch  []*pending[tokenTake]
	script *topology.Script
}

// runBatch sends the calls of a batch within the budget, unless the breaker is open. A node that answered any of the calls works,
// even with a redirect; only the calls without an answer fail.
func (n *node) runBatch(batch []*pending[tokenTake]) error {
	n.cluster.metrics.batch.Observe(float64(len(batch)))
	_, err := n.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), n.cluster.budget)
		defer cancel()
		unknown, err := n.pipeline(ctx, n.calls(ctx, batch))
		if err != nil || len(unknown) == 0 {
			return "", err
		}
		for i, call := range unknown {
			unknown[i].script = n.script(ctx, call.batch, true)
		}
		_, err = n.pipeline(ctx, unknown)
		return "", err
	})
	n.cluster.metrics.countCall(err)
	return err
}

// calls returns the calls of a batch.
func (n *node) calls(ctx context.Context, batch []*pending[tokenTake]) (calls []accountCall) {
	sortTakes(batch)
	for len(batch) > 0 {
		first, end := &batch[0].item, 1
		for end < len(batch) && batch[end].item.rules == first.rules && batch[end].item.account.name == first.account.name {
			end++
		}
		calls = append(calls, accountCall{batch[:end], n.script(ctx, batch[:end], false)})
		batch = batch[end:]
	}
	return calls
}

// script returns the call for these requests, with the script's text if text is set.
func (n *node) script(ctx context.Context, batch []*pending[tokenTake], text bool) *topology.Script {
	addTakes(&n.tokens, batch)
	return n.tokens.OnCluster(ctx, batch[0].item.account.name, text)
}

// pipeline sends calls and returns those whose script the node does not know. It sets the decisions or errors of the others.
func (n *node) pipeline(ctx context.Context, calls []accountCall) (unknown []accountCall, err error) {
	c := n.cluster
	pipe := c.client.Pipeline()
	for _, call := range calls {
		_ = pipe.Process(ctx, call.script) // this only queues it
	}
	askedAt := time.Now()
	_, err = pipe.Exec(ctx)
	rtt := time.Since(askedAt)
	if err == nil {
		c.metrics.roundTrip.Observe(rtt.Seconds())
	}
	works, all := err == nil, true
	for _, call := range calls {
		answered, failure := call.setDecisions(askedAt, rtt)
		switch {
		case answered:
			works = true
			continue
		case redis.HasErrorPrefix(failure, "NOSCRIPT"):
			works = true
			unknown = append(unknown, call)
			continue
		case n.known && call.script.Redirected():
			works = true
			c.migrating.SetIfAbsent(slot(call.script.Key()), c.newNode(false))
		}
		all = false
		for _, p := range call.batch {
			p.err = failure
		}
	}
	if !all {
		// A replica may have replaced a node that is down.
		topology.Reload(c.client)
	}
	if works {
		return unknown, nil
	}
	return nil, err
}

// setDecisions reports whether the call was answered, and otherwise the error. go-redis may set an error on a call that was
// answered before: the deadline's, if it passed while other calls of the pipeline were redirected.
func (a accountCall) setDecisions(askedAt time.Time, rtt time.Duration) (answered bool, failure error) {
	if a.script.Val() == nil {
		return false, a.script.Err()
	}
	a.script.SetErr(nil)
	reply, err := a.script.Int64Slice()
	if err == nil && len(reply) != 2*len(a.batch) {
		err = fmt.Errorf("redis sent %d numbers on %d requests", len(reply), len(a.batch))
	}
	if err != nil {
		return false, err
	}
	setDecisions(a.batch, reply, askedAt, rtt)
	return true, nil
}
