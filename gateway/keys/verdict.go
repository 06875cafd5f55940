package keys

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/wire"
)

// Verdict describes a key that may be used. It is shared and, except for Usage and Refusals, immutable. It is small because a million may be
// cached, so derived values are methods.
type Verdict struct {
	// names begins with the name of the key's rate limit bucket, which is the same on every replica and for all rotations of a key.
	// The bucket of its account and environment follows, which ends with the account's id.
	names string
	// bucketEnd and accountEnd are where these names end.
	bucketEnd, accountEnd int32
	// Usage counts the key's requests by kind.
	Usage usage.Counter
	// Refusals remembers the last refusal by a rate limit.
	Refusals limit.Refusals

	limit, accountLimit compactLimit
	scopes              apikey.Scopes
	// from is where requests may come from. It is a pointer because few keys have networks or origins.
	from *sources
	// askedAt is when the look-up began, as time since the verifier's start. The verdict was true then or later.
	askedAt time.Duration
	// expires is when the key expires, by the same clock; never for a key without expiry.
	expires time.Duration
}

// sources are where requests may come from.
type sources struct {
	// networks are those that the key may be used from, none for any.
	networks []netip.Prefix
	// origins are those of pages that may send client tokens of the key.
	origins []string
}

const never time.Duration = math.MaxInt64

func newVerdict(v control.Verification, askedAt time.Duration) *Verdict {
	// One string holds both ids and the bucket's name. It holds the key id only if a rotation made it differ from the bucket.
	bucket := tokenbucket.KeyName(v.LimitBucket)
	text := bucket + tokenbucket.AccountName(v.Environment, v.AccountID)
	bucketEnd, accountEnd := len(bucket), len(text)
	keyID := text[bucketEnd-len(v.LimitBucket) : bucketEnd]
	if v.KeyID != v.LimitBucket {
		text += v.KeyID
		keyID = text[accountEnd:]
	}
	verdict := &Verdict{
		names:        text,
		bucketEnd:    int32(bucketEnd),  //nolint:gosec // as long as a few ids
		accountEnd:   int32(accountEnd), //nolint:gosec // as long as a few ids
		limit:        newCompactLimit(v.Limit),
		accountLimit: newCompactLimit(v.AccountLimit),
		scopes:       apikey.AllScopes,
		askedAt:      askedAt,
		expires:      never,
	}
	if v.ExpiresAt != nil {
		verdict.expires = askedAt + min(v.ExpiresIn, never-askedAt)
	}
	if v.Scopes != nil {
		verdict.scopes = 0
		for _, name := range v.Scopes {
			verdict.scopes |= apikey.ScopeOf(name)
		}
	}
	if len(v.Networks)+len(v.Origins) > 0 {
		verdict.from = &sources{slices.Clone(v.Networks), slices.Clone(v.Origins)}
	}
	verdict.Usage.SetKeyID(keyID)
	return verdict
}

// KeyID is the id of the key.
func (v *Verdict) KeyID() string { return v.Usage.KeyID() }

// Environment is the environment that the key may be used in.
func (v *Verdict) Environment() network.Environment {
	if strings.HasPrefix(v.accountBucket(), liveBuckets) {
		return network.Live
	}
	return network.Test
}

// Has reports whether the key has all of the scopes.
func (v *Verdict) Has(needed apikey.Scopes) bool { return v.scopes.Has(needed) }

// AllowsFrom reports whether the key may be used from the address, which must not be an IPv4-mapped IPv6 address.
func (v *Verdict) AllowsFrom(address netip.Addr) bool {
	return v.from == nil || len(v.from.networks) == 0 || slices.ContainsFunc(v.from.networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

// AllowsOrigin reports whether pages of the origin may send client tokens of the key.
func (v *Verdict) AllowsOrigin(origin []byte) bool {
	return v.from != nil && slices.ContainsFunc(v.from.origins, func(o string) bool { return o == string(origin) })
}

// liveBuckets is the prefix of the bucket names of accounts in the live environment.
var liveBuckets = tokenbucket.AccountName(network.Live, "")

// AccountID is the id of the key's account.
func (v *Verdict) AccountID() string { return v.accountBucket()[len(liveBuckets):] } // the prefix of test is as long

// Limit is the key's rate limit.
func (v *Verdict) Limit() tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: v.names[:v.bucketEnd], Rule: v.limit.rule()}
}

// AccountLimit is the rate limit of all keys of the account in the key's environment together.
func (v *Verdict) AccountLimit() tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: v.accountBucket(), Rule: v.accountLimit.rule()}
}

func (v *Verdict) accountBucket() string { return v.names[v.bucketEnd:v.accountEnd] }

// compactLimit is a limit in eight bytes.
type compactLimit struct{ requests, periodSeconds int32 }

func newCompactLimit(l wire.KeyLimit) compactLimit {
	return compactLimit{
		requests:      int32(min(l.Requests, math.MaxInt32)),      //nolint:gosec // bounded by MaxInt32
		periodSeconds: int32(min(l.PeriodSeconds, math.MaxInt32)), //nolint:gosec // bounded by MaxInt32
	}
}

func (l compactLimit) rule() tokenbucket.Rule {
	return tokenbucket.Per(int(l.requests), time.Duration(l.periodSeconds)*time.Second)
}

func (v *Verdict) expired(now time.Duration) bool { return now >= v.expires }
