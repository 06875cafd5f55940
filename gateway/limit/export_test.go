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
	keys, batch := make([]string, len(names)), make([]*pending[bucketTake], len(names))
	for i, name := range names {
		keys[i], batch[i] = bucketPrefix+name, &pending[bucketTake]{}
	}
	reply, err := takeMany.Run(ctx, client, keys, rule.Burst, rule.Rate, rule.Period.Seconds()).Text()
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(names))
	err = parseReply(reply, rule, batch)
	for i, p := range batch {
		decisions[i] = p.item.decision
	}
	return decisions, err
}

// Bucket is one local bucket whose clock is the caller's, for comparing it with redis_rate.
type Bucket struct{ bucket }

// Take decides without Redis.
func (b *Bucket) Take(rule redis_rate.Limit, now time.Time) Decision { return b.take(rule, now) }

// Update stores an answer of Redis.
func (b *Bucket) Update(d Decision, askedAt time.Time) { b.update(d, askedAt, 0) }

// CachedRefusal is the refusal without a call to Redis.
func (b *Bucket) CachedRefusal(rule redis_rate.Limit, now time.Time) (Decision, bool) {
	return b.cachedRefusal(rule, now)
}

// Batcher runs items without a value, for a test that stands in for Redis.
type Batcher struct{ batcher[struct{}] }

// NewBatcher makes a batcher that calls run with the size of each batch.
func NewBatcher(run func(items int) error) *Batcher {
	b := &Batcher{}
	b.run = func(batch []*pending[struct{}]) error { return run(len(batch)) }
	return b
}

// Do runs one item.
func (b *Batcher) Do() error {
	_, err := b.do(tracing.Noop, struct{}{})
	return err
}

// Waiting is how many items wait for a batch.
func (b *Batcher) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Slot is a key's hash slot.
func Slot(key string) uint16 { return slot(key) }
