package limit

import (
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/maypok86/otter/v2"
)

// staleAfter is how long a refusal is given without asking Redis again.
const staleAfter = 5 * time.Second

// bucket is this replica's copy of a shared bucket, kept by redis_rate's own algorithm (GCRA): a bucket is the time at
// which it will be full again, and each request moves that time on by Period/Rate.
//
// The copy serves twice. A client that keeps asking while it is refused costs no calls: until the time Redis named the
// answer can only be the same, because a refusal spends nothing and others can only have spent more. And while Redis
// does not answer, requests are held to the copy, which starts from what Redis said last.
type bucket struct {
	// key is the bucket's in Redis.
	key string

	mu sync.Mutex
	// said is when the bucket is full by Redis's last answer, counted from before the call, so never too late.
	said time.Time
	// asked is when that was asked for, and lag how long the answer took: by as much said may be too early.
	asked time.Time
	lag   time.Duration
	// full is said, and what was let through without Redis since.
	full time.Time
}

// tell notes an answer of Redis that was asked for at one time and came at another.
func (b *bucket) tell(d Decision, asked, answered time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said, b.asked, b.lag = asked.Add(d.ResetAfter), asked, answered.Sub(asked)
	b.full = b.said
}

// refusal is the answer Redis would give if it can only be a refusal. It is never one where redis_rate would let the
// request through; only if the bucket were wiped in Redis it outlives that, by the time of one token (1.2 s at 50 a
// minute) and at most by staleAfter.
func (b *bucket) refusal(rule redis_rate.Limit, now time.Time) (d Decision, certain bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.asked) > staleAfter {
		return Decision{}, false
	}
	d, _ = decide(b.said, rule, now)
	// What is told must not be too early, or a client that waits as told would be refused again.
	d.RetryAfter += b.lag
	d.ResetAfter += b.lag
	d.Remembered = true
	return d, !d.Allowed
}

// take decides without Redis.
func (b *bucket) take(rule redis_rate.Limit, now time.Time) (d Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, b.full = decide(b.full, rule, now)
	return d
}

// decide is GCRA: the decision on one request at the time now, and when the bucket is full after it.
func decide(full time.Time, rule redis_rate.Limit, now time.Time) (Decision, time.Time) {
	interval, size := dimensions(rule)
	if full.Before(now) {
		full = now
	}
	next := full.Add(interval)
	spare := size - next.Sub(now)
	if spare < 0 {
		return Decision{Rule: rule, RetryAfter: -spare, ResetAfter: full.Sub(now)}, full
	}
	return Decision{Allowed: true, Rule: rule, Remaining: int(spare / interval), ResetAfter: next.Sub(now)}, next
}

// dimensions are how long one request takes to come back, and the whole bucket.
func dimensions(rule redis_rate.Limit) (interval, size time.Duration) {
	period, rate, burst := rule.Period.Nanoseconds(), int64(rule.Rate), int64(rule.Burst)
	// The product of period and burst may not fit.
	return time.Duration(max(1, period/rate)), time.Duration(period/rate*burst + period%rate*burst/rate)
}

// buckets is the bounded set of copies. A key that is pushed out of it starts again without one.
type buckets struct {
	cache *otter.Cache[string, *bucket]
}

func newBuckets(capacity int) *buckets {
	return &buckets{cache: otter.Must(&otter.Options[string, *bucket]{
		MaximumSize: capacity,
		// By then a bucket of the usual period is full, which is as good as none.
		ExpiryCalculator: otter.ExpiryAccessing[string, *bucket](10 * time.Minute),
	})}
}

// of is the copy of the bucket name, a new one if need be.
func (b *buckets) of(name string) *bucket {
	if own, held := b.cache.GetIfPresent(name); held {
		return own
	}
	own, _ := b.cache.SetIfAbsent(name, &bucket{key: bucketPrefix + name})
	return own
}
