package keys

import (
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/gateway/control"
	"intents.internal/pkg/network"
)

// Verdict is what is known of a key that may be used. It is shared and never changed.
type Verdict struct {
	KeyID       string
	AccountID   string
	Environment network.Environment
	// Bucket names the key's rate limit bucket, the same on every replica.
	Bucket string
	// Rule is the key's rate limit.
	Rule redis_rate.Limit
	// asked is when the look-up that brought the verdict began: it was true then or later.
	asked time.Time
	// expires is when the key ends by this process's monotonic clock, zero for never.
	expires time.Time
}

func newVerdict(v control.Verification, asked time.Time) *Verdict {
	// One string holds both ids and the bucket's name, since a million verdicts may be held.
	text := "key:" + v.KeyID + v.AccountID
	end := len("key:") + len(v.KeyID)
	verdict := &Verdict{
		KeyID:       text[len("key:"):end],
		AccountID:   text[end:],
		Environment: network.Live,
		Bucket:      text[:end],
		Rule: redis_rate.Limit{
			Rate:   v.Limit.Requests,
			Burst:  v.Limit.Requests,
			Period: time.Duration(v.Limit.PeriodSeconds) * time.Second,
		},
		asked: asked,
	}
	if v.Environment == network.Test {
		verdict.Environment = network.Test // the constants, so that core's copies of the words are not kept
	}
	if v.ExpiresAt != nil {
		verdict.expires = asked.Add(v.ExpiresIn)
	}
	return verdict
}

func (v *Verdict) expired(now time.Time) bool { return !v.expires.IsZero() && !now.Before(v.expires) }
