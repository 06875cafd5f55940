package keys

import (
	"math"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/gateway/control"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/network"
)

// Verdict describes a key that may be used. It is shared and, except for Usage, never changed. It is kept small because a
// million may be cached: what can be computed is a method.
type Verdict struct {
	AccountID string
	// Bucket names the key's rate limit bucket, which is the same on every replica and for all rotations of a key.
	Bucket string
	// Usage counts the key's requests by kind.
	Usage usage.Counter

	requests, periodSeconds int32
	live                    bool
	// askedAt is when the look-up began, as time since the verifier's start: the verdict was true then or later.
	askedAt time.Duration
	// expires is when the key expires, by the same clock; never for a key without expiry.
	expires time.Duration
}

const never time.Duration = math.MaxInt64

func newVerdict(v control.Verification, askedAt time.Duration) *Verdict {
	// One string holds both ids and the bucket's name, and the key id only where a rotation made it differ from the bucket.
	text := "key:" + v.LimitBucket + v.AccountID
	bucketEnd, accountEnd := len("key:")+len(v.LimitBucket), len(text)
	keyID := text[len("key:"):bucketEnd]
	if v.KeyID != v.LimitBucket {
		text += v.KeyID
		keyID = text[accountEnd:]
	}
	verdict := &Verdict{
		AccountID:     text[bucketEnd:accountEnd],
		Bucket:        text[:bucketEnd],
		requests:      int32(min(v.Limit.Requests, math.MaxInt32)),      //nolint:gosec // bounded by MaxInt32
		periodSeconds: int32(min(v.Limit.PeriodSeconds, math.MaxInt32)), //nolint:gosec // bounded by MaxInt32
		live:          v.Environment == network.Live,
		askedAt:       askedAt,
		expires:       never,
	}
	if v.ExpiresAt != nil {
		verdict.expires = askedAt + min(v.ExpiresIn, never-askedAt)
	}
	verdict.Usage.SetKeyID(keyID)
	return verdict
}

// KeyID is the id of the key.
func (v *Verdict) KeyID() string { return v.Usage.KeyID() }

// Environment is the environment that the key may be used in.
func (v *Verdict) Environment() network.Environment {
	if v.live {
		return network.Live
	}
	return network.Test
}

// Rule is the key's rate limit.
func (v *Verdict) Rule() redis_rate.Limit {
	return redis_rate.Limit{
		Rate: int(v.requests), Burst: int(v.requests), Period: time.Duration(v.periodSeconds) * time.Second,
	}
}

func (v *Verdict) expired(now time.Duration) bool { return now >= v.expires }
