package limit

import (
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/maypok86/otter/v2"
)

// refusalTTL bounds how long a refusal is repeated without a call to Redis.
const refusalTTL = 5 * time.Second

// bucket is this replica's copy of a shared bucket. Its algorithm is redis_rate's, GCRA: the state is the theoretical arrival
// time (TAT), at which the bucket will be full again, and each admitted request adds one emission interval to it.
//
// A copy saves calls: until the time Redis named, a refused key can only be refused again, because a refusal takes no token
// and other replicas can only have taken more. And while Redis does not answer, the copy limits the key, starting from
// Redis's last answer.
type bucket struct {
	// key is the bucket's key in Redis.
	key string

	mu sync.Mutex
	// tat is Redis's last answer, counted from askedAt, so it is never too late.
	tat time.Time
	// askedAt is when that call began, and rtt how long it took: tat may be too early by rtt.
	askedAt time.Time
	rtt     time.Duration
	// localTAT is tat plus what was admitted without Redis since.
	localTAT time.Time
}

// update stores an answer of Redis to a call that began at askedAt and took rtt.
func (b *bucket) update(d Decision, askedAt time.Time, rtt time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tat, b.askedAt, b.rtt = askedAt.Add(d.ResetAfter), askedAt, rtt
	b.localTAT = b.tat
}

// cachedRefusal is Redis's answer where that can only be a refusal. It never refuses what redis_rate would admit, with one
// exception: after a bucket was deleted in Redis it lasts for one emission interval (1.2 s at 50 a minute), at most refusalTTL.
func (b *bucket) cachedRefusal(rule redis_rate.Limit, now time.Time) (d Decision, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.askedAt) > refusalTTL {
		return Decision{}, false
	}
	d, _ = gcra(b.tat, rule, now)
	// The times must not be too early, or a client that waits for as long would be refused again.
	d.RetryAfter += b.rtt
	d.ResetAfter += b.rtt
	d.Cached = true
	return d, !d.Allowed
}

// take decides without Redis.
func (b *bucket) take(rule redis_rate.Limit, now time.Time) (d Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, b.localTAT = gcra(b.localTAT, rule, now)
	return d
}

// gcra decides on one request at the time now, and returns the TAT after it.
func gcra(tat time.Time, rule redis_rate.Limit, now time.Time) (Decision, time.Time) {
	emissionInterval, burstOffset := gcraParameters(rule)
	if tat.Before(now) {
		tat = now
	}
	newTAT := tat.Add(emissionInterval)
	left := burstOffset - newTAT.Sub(now)
	if left < 0 {
		return Decision{Rule: rule, RetryAfter: -left, ResetAfter: tat.Sub(now)}, tat
	}
	return Decision{Allowed: true, Rule: rule, Remaining: int(left / emissionInterval), ResetAfter: newTAT.Sub(now)}, newTAT
}

// gcraParameters are the time that refills one token, and the time that refills the whole bucket.
func gcraParameters(rule redis_rate.Limit) (emissionInterval, burstOffset time.Duration) {
	period, rate, burst := rule.Period.Nanoseconds(), int64(rule.Rate), int64(rule.Burst)
	// The product of period and burst may overflow.
	return time.Duration(max(1, period/rate)), time.Duration(period/rate*burst + period%rate*burst/rate)
}

// buckets is the bounded set of copies. A copy that is evicted starts again without Redis's answer.
type buckets struct {
	cache *otter.Cache[string, *bucket]
}

func newBuckets(capacity int) *buckets {
	return &buckets{cache: otter.Must(&otter.Options[string, *bucket]{
		MaximumSize: capacity,
		// A bucket of the usual period is full by then, which is the state of a new one.
		ExpiryCalculator: otter.ExpiryAccessing[string, *bucket](10 * time.Minute),
	})}
}

// get returns the copy of the bucket name, and makes it if there is none.
func (b *buckets) get(name string) *bucket {
	if found, ok := b.cache.GetIfPresent(name); ok {
		return found
	}
	added, _ := b.cache.SetIfAbsent(name, &bucket{key: bucketPrefix + name})
	return added
}
