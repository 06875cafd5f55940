package limit

import (
	"time"

	"intents.internal/pkg/tokenbucket"
)

// Request is one request whose buckets are local and whose clock is the caller's, for comparing it with redis_rate.
type Request struct{ key, account bucket }

func (r *Request) under(key, account tokenbucket.Rule) request {
	return request{&r.key, &r.account, rules{key, account, 1}}
}

// TakeLocal decides without Redis.
func (r *Request) TakeLocal(key, account tokenbucket.Rule, now time.Time) Decision {
	return r.under(key, account).takeLocal(now)
}

// Update stores Redis's answer on the key.
func (r *Request) Update(q tokenbucket.Quota, askedAt time.Time) { r.key.update(q, askedAt, 0) }

// CachedRefusal is the refusal without a call to Redis.
func (r *Request) CachedRefusal(key, account tokenbucket.Rule, now time.Time) (Decision, bool) {
	last := r.under(key, account)
	return last.cachedRefusal(1, now)
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
	_, err := b.do(struct{}{})
	return err
}

// Waiting is how many items wait for a batch.
func (b *Batcher) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Waiting is how many requests wait for the next batch to one server.
func Waiting(l *Limiter) int {
	s, _ := l.store.(*single)
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	return len(s.batcher.waiting)
}

// Slot is a key's hash slot.
func Slot(key string) uint16 { return slot(key) }
