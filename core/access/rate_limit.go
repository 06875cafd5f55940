package access

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/core/account"
)

// keyLimit begins the gateways' names of the buckets of keys.
const keyLimit = "key"

// RateLimit is the state of a key's bucket.
type RateLimit struct {
	// Known is false where Redis does not tell; the other fields mean nothing then.
	Known bool
	// Remaining is the number of requests that the key has left.
	Remaining int
	// ResetAfter is the time until the bucket is full.
	ResetAfter time.Duration
}

// RateLimits returns the state of the keys' buckets, in the keys' order, and takes nothing out of them. It asks for all in one round
// trip, or one to each node of a Cluster.
func (s *Service) RateLimits(ctx context.Context, keys ...*account.Key) []RateLimit {
	limits := make([]RateLimit, len(keys))
	if s.Redis == nil || len(keys) == 0 {
		return limits
	}
	pipeline := s.Redis.Pipeline()
	replies, nodes := make([]*redis.StringCmd, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		bucket, ok := keyLimit+":"+key.LimitBucket.String(), false
		if nodes[i], ok = s.limiter.node(bucket); ok {
			replies[i] = pipeline.Get(ctx, redisPrefix+bucket)
		}
	}
	_, _ = pipeline.Exec(ctx) // each reply has its own error
	now := time.Now()
	for i, reply := range replies {
		if reply == nil {
			continue
		}
		full, err := reply.Float64()
		switch {
		case err == nil, errors.Is(err, redis.Nil):
			limits[i] = newRateLimit(full, now, keys[i].Limit)
		case reply.Err() != nil:
			_ = s.limiter.trip(ctx, nodes[i], err) // trip has logged it
		}
	}
	return limits
}

// TakeRequest takes one request out of a key's bucket, as a gateway does for a request with the key, or returns a *LimitedError.
func (s *Service) TakeRequest(ctx context.Context, key *account.Key) error {
	l := limit{s.limiter, keyLimit, redis_rate.Limit{Rate: key.Limit.Requests, Burst: key.Limit.Requests, Period: key.Limit.Period}}
	return l.take(ctx, key.LimitBucket.String())
}

// redisRateEpoch is the Unix time from which redis_rate counts seconds.
const redisRateEpoch = 1483228800

// newRateLimit decides as redis_rate does for no request (GCRA). full is when the bucket is full, 0 for a bucket that is not kept. This
// machine's clock stands for that of Redis: the state is only shown.
func newRateLimit(full float64, now time.Time, limit account.Limit) RateLimit {
	reset := max(0, full+redisRateEpoch-float64(now.UnixMicro())/1e6)
	interval := limit.Period.Seconds() / float64(limit.Requests)
	return RateLimit{
		Known: true, Remaining: int(max(0, math.Floor(float64(limit.Requests)-reset/interval))),
		ResetAfter: time.Duration(reset * float64(time.Second)),
	}
}
