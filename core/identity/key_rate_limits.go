package identity

import (
	"context"
	"math"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// keyLimit is the name of the limits of keys and accounts in the metrics.
const keyLimit = "key"

// RateLimit is the state of a key's bucket.
type RateLimit struct {
	// Known is false if Redis does not respond; the other fields are undefined then.
	Known bool
	// Remaining is the number of requests that the key has left.
	Remaining int
	// ResetAfter is the time until the bucket is full.
	ResetAfter time.Duration
}

// RateLimits returns the state of the keys' buckets, in the keys' order, and takes no tokens. All keys are of one account. It
// reads those of an environment in one round trip.
func (s *Keys) RateLimits(ctx context.Context, keys ...*account.Key) []RateLimit {
	limits := make([]RateLimit, len(keys))
	for _, env := range []network.Environment{network.Test, network.Live} {
		var buckets []string
		var at []int
		for i, key := range keys {
			if key.Environment == env {
				buckets, at = append(buckets, key.Bucket().Name), append(at, i)
			}
		}
		if len(buckets) == 0 {
			continue
		}
		accountBucket := tokenbucket.AccountName(env, keys[at[0]].AccountID.String())
		for i, full := range s.full(ctx, accountBucket, buckets) {
			limits[at[i]] = newRateLimit(full, time.Now(), keys[at[i]].Bucket().Rule)
		}
	}
	return limits
}

// AccountRateLimit returns the state of the bucket that all keys of an account in one environment share.
func (s *Keys) AccountRateLimit(ctx context.Context, owner *account.Account, env network.Environment) RateLimit {
	bucket := owner.Bucket(env)
	for _, full := range s.full(ctx, bucket.Name, []string{bucket.Name}) {
		return newRateLimit(full, time.Now(), bucket.Rule)
	}
	return RateLimit{}
}

// full returns when the buckets of an account and its keys are full, or nothing if Redis does not respond.
func (s *Keys) full(ctx context.Context, accountBucket string, buckets []string) (full []float64) {
	_ = s.limiter.call(ctx, tokenbucket.AccountHash(accountBucket), func() (err error) { // call has logged it
		full, err = tokenbucket.Full(ctx, s.Redis, accountBucket, buckets...)
		return err
	})
	return full
}

// TakeRequest takes one token from the bucket of a key and one from that of its account, as a gateway does for a request with the
// key, or returns a *LimitedError. It returns account.ErrNotFound for the key of another account.
func (s *Keys) TakeRequest(ctx context.Context, owner *account.Account, key *account.Key) error {
	if key.AccountID != owner.ID {
		return account.ErrNotFound
	}
	return s.limiter.takeRequest(ctx, key.Bucket(), owner.Bucket(key.Environment))
}

// newRateLimit computes the state without a request. full is when the bucket is full, 0 for a bucket that
// is not stored, NaN for a malformed value. It uses this machine's clock instead of Redis's, because the state is only displayed.
func newRateLimit(full float64, now time.Time, rule tokenbucket.Rule) RateLimit {
	if math.IsNaN(full) {
		return RateLimit{}
	}
	quota := rule.Quota(time.UnixMicro(int64((full+tokenbucket.Epoch)*1e6)), 1, now)
	return RateLimit{Known: true, Remaining: quota.Remaining, ResetAfter: quota.ResetAfter}
}
