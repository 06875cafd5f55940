package access

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/core/account"
)

// RateLimit is how a key's bucket stands.
type RateLimit struct {
	// Known is false where Redis does not tell; nothing else is right then.
	Known bool
	// Remaining is how many requests the key has left.
	Remaining int
	// ResetAfter is when the bucket will be full.
	ResetAfter time.Duration
}

// RateLimits tells how the keys' buckets stand, in the keys' order, and spends nothing. All are asked for in one round trip, or
// one to each node of a Cluster.
func (s *Service) RateLimits(ctx context.Context, keys ...*account.Key) []RateLimit {
	limits := make([]RateLimit, len(keys))
	if s.Redis == nil || len(keys) == 0 {
		return limits
	}
	pipeline := s.Redis.Pipeline()
	asked, nodes := make([]*redis.Cmd, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		bucket, reachable := bucketOf(key), false
		if nodes[i], reachable = s.limiter.node(bucket); reachable {
			asked[i] = pipeline.Eval(ctx, readBucket, []string{redisPrefix + bucket})
		}
	}
	if pipeline.Len() > 0 {
		_, _ = pipeline.Exec(ctx) // each command has its own error
	}
	for i, command := range asked {
		if command == nil {
			continue
		}
		state, err := command.StringSlice()
		if err != nil {
			_ = s.limiter.failed(ctx, nodes[i], err) // noted there
			continue
		}
		limits[i] = newRateLimit(state, keys[i].Limit)
	}
	return limits
}

// bucketOf is what gateways name a key's bucket.
func bucketOf(key *account.Key) string { return "key:" + key.LimitBucket.String() }

// readBucket returns the time of the server that has a bucket, as TIME tells it, and what redis_rate keeps of the bucket: its
// theoretical arrival time, empty for a full one.
const readBucket = `local now = redis.call("TIME")
return {now[1], now[2], redis.call("GET", KEYS[1]) or ""}`

// redisRateEpoch is the Unix time from which redis_rate counts seconds.
const redisRateEpoch = 1483228800

// newRateLimit decides as redis_rate does for no request (GCRA). A bucket that redis_rate has not written is not known.
func newRateLimit(state []string, limit account.Limit) RateLimit {
	var seconds, micros, full float64
	if _, err := fmt.Sscan(strings.Join(state[:2], " "), &seconds, &micros); err != nil {
		return RateLimit{}
	}
	if state[2] != "" {
		if _, err := fmt.Sscan(state[2], &full); err != nil {
			return RateLimit{}
		}
	}
	now := seconds - redisRateEpoch + micros/1e6
	full = max(full, now)
	interval := limit.Period.Seconds() / float64(limit.Requests)
	free := (now - (full - interval*float64(limit.Requests))) / interval
	return RateLimit{
		Known: true, Remaining: int(max(0, math.Floor(free))), ResetAfter: time.Duration((full - now) * float64(time.Second)),
	}
}
