package access

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/core/account"
)

// RateLimit tells how many requests a key has left and when its bucket will be full, and spends none. It returns
// ErrLimitUnknown while Redis does not answer.
func (s *Service) RateLimit(ctx context.Context, key *account.Key) (remaining int, resetAfter time.Duration, err error) {
	result, err := s.limiter.peek(ctx, bucketOf(key), redis_rate.Limit{
		Rate: key.Limit.Requests, Burst: key.Limit.Requests, Period: key.Limit.Period,
	})
	if err != nil {
		return 0, 0, err
	}
	return result.Remaining, max(0, result.ResetAfter), nil
}

// bucketOf is what gateways name a key's bucket.
func bucketOf(key *account.Key) string { return "key:" + key.LimitBucket.String() }
