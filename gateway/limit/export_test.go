package limit

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/tracing"
)

// TakeMany takes one request from each of the buckets in one call.
func TakeMany(ctx context.Context, client *redis.Client, names []string, rule redis_rate.Limit) ([]Decision, error) {
	keys, batch := make([]string, len(names)), make([]*request, len(names))
	for i, name := range names {
		keys[i], batch[i] = bucketPrefix+name, &request{}
	}
	reply, err := takeMany.Run(ctx, client, keys, rule.Burst, rule.Rate, rule.Period.Seconds()).Text()
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(names))
	err = readReply(reply, rule, batch)
	for i, r := range batch {
		decisions[i] = r.decision
	}
	return decisions, err
}

// Bucket is one local bucket with its clock held outside, for comparing it with redis_rate.
type Bucket struct{ bucket }

// Take decides without Redis.
func (b *Bucket) Take(rule redis_rate.Limit, now time.Time) Decision { return b.take(rule, now) }

// Tell notes an answer of Redis.
func (b *Bucket) Tell(d Decision, asked time.Time) { b.tell(d, asked, asked) }

// Refusal is the refusal that is certain.
func (b *Bucket) Refusal(rule redis_rate.Limit, now time.Time) (Decision, bool) {
	return b.refusal(rule, now)
}

// Combiner shares the calls of concurrent requests, for a test that stands in for Redis.
type Combiner struct{ combiner }

// NewCombiner makes one whose batches, of so many requests, are decided by ask.
func NewCombiner(ask func(requests int) error) *Combiner {
	c := &Combiner{}
	c.ask = func(batch []*request) error { return ask(len(batch)) }
	return c
}

// Decide has one request decided.
func (c *Combiner) Decide() error {
	_, err := c.decide(tracing.Noop, &bucket{}, redis_rate.PerMinute(50))
	return err
}

// Waiting is how many requests wait for a batch.
func (c *Combiner) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// Slot is a key's hash slot.
func Slot(key string) uint16 { return slot(key) }
