package limit

import (
	"time"

	"github.com/go-redis/redis_rate/v10"
)

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
