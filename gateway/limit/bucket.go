package limit

import (
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"intents.internal/pkg/tokenbucket"
)

// refusalTTL bounds how long a rejection is repeated without a call to Redis.
const refusalTTL = 5 * time.Second

// bucket is this replica's copy of a shared bucket. Its state is the theoretical arrival time (TAT), at which it will be
// full again.
//
// A copy saves calls: a bucket that lacks a request's tokens can only reject it until the time that Redis returned, because a
// rejection takes no token and other replicas can only have taken more. It says nothing of requests of fewer tokens, which the bucket
// may have. While Redis does not respond, the copies limit keys and accounts from Redis's last response on.
type bucket struct {
	// name is the bucket's name, and field its tokenbucket.Field, a string.
	name  string
	field any

	mu sync.Mutex
	// tat is from Redis's last response, measured from askedAt, so it is never too late.
	tat time.Time
	// askedAt is when that call began, and rtt its duration: tat may be too early by rtt.
	askedAt time.Time
	rtt     time.Duration
	// localTAT is tat plus what was admitted since without Redis.
	localTAT time.Time
}

// update stores a response of Redis to a call that began at askedAt and took rtt.
func (b *bucket) update(q tokenbucket.Quota, askedAt time.Time, rtt time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tat, b.askedAt, b.rtt = askedAt.Add(q.ResetAfter), askedAt, rtt
	b.localTAT = b.tat
}

// peek returns the bucket's state by Redis's last response, and whether Redis could only reject a request of so many tokens now. It
// never rejects what redis_rate would admit, with one exception: after a bucket was deleted in Redis, the rejection lasts for one
// emission interval (1.2 s at 50 a minute) for each token that the copy lacks, at most refusalTTL.
func (b *bucket) peek(rule tokenbucket.Rule, tokens int, now time.Time) (q tokenbucket.Quota, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q = rule.Quota(b.tat, tokens, now)
	// A bucket that lacks more than this rule allows was charged by another rule: Redis clamps it when the next request asks.
	if q.RetryAfter == 0 || b.tat.Sub(now) > q.ResetAfter || now.Sub(b.askedAt) > refusalTTL {
		q.RetryAfter = 0
		return q, false
	}
	// The times must not be too early: a client that waits for this long must be admitted.
	q.RetryAfter += b.rtt
	q.ResetAfter += b.rtt
	return q, true
}

// rules are the limits of a key and of its account, and how many tokens of the account a request takes.
type rules struct {
	key, account tokenbucket.Rule
	cost         int
}

// request is one request of a key.
type request struct {
	key, account *bucket
	rules        rules
}

// cachedRefusal returns Redis's decision on this request, at a cost that may be another, if it can only be a rejection, by the key's
// bucket or by its account's.
func (r *request) cachedRefusal(cost int, now time.Time) (d Decision, ok bool) {
	key, byKey := r.key.peek(r.rules.key, 1, now)
	account, byAccount := r.account.peek(r.rules.account, cost, now)
	if !byKey && !byAccount {
		return Decision{}, false
	}
	d = decide(key, account)
	d.Cached = true
	return d, true
}

// takeLocal decides without Redis.
func (r request) takeLocal(now time.Time) Decision {
	r.key.mu.Lock() // always before the account's, to avoid deadlock
	defer r.key.mu.Unlock()
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	r.key.localTAT = r.rules.key.Clamp(r.key.localTAT, now)
	r.account.localTAT = r.rules.account.Clamp(r.account.localTAT, now)
	d := decide(r.rules.key.Quota(r.key.localTAT, 1, now), r.rules.account.Quota(r.account.localTAT, r.rules.cost, now))
	if d.Allowed {
		r.key.localTAT, r.account.localTAT = d.Spend(1, now), d.Account.Spend(r.rules.cost, now)
	}
	return d
}

// buckets is a bounded cache of copies. An evicted copy is created again without Redis's response.
type buckets struct {
	cache *otter.Cache[string, *bucket]
}

func newBuckets(capacity int) *buckets {
	return &buckets{cache: otter.Must(&otter.Options[string, *bucket]{
		MaximumSize: capacity,
		// After this time a bucket with a usual period is full, which is the state of a new one.
		ExpiryCalculator: otter.ExpiryAccessing[string, *bucket](10 * time.Minute),
	})}
}

// get returns the copy of the named bucket, and creates it if there is none.
func (b *buckets) get(name string) *bucket {
	if found, ok := b.cache.GetIfPresent(name); ok {
		return found
	}
	added, _ := b.cache.SetIfAbsent(name, &bucket{name: name, field: tokenbucket.Field(name)})
	return added
}
