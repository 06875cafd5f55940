package keys

import (
	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
)

// Store caches a verdict as if core had just answered.
func (v *Verifier) Store(hash apikey.Hash, verification control.Verification) {
	v.verdicts.Set(hash, newVerdict(verification, v.now()))
}

// Cached is the number of cached verdicts, after the cache has evicted what it must.
func (v *Verifier) Cached() int {
	v.verdicts.CleanUp()
	return v.verdicts.EstimatedSize()
}

// InFilter reports whether there is a filter and it holds the key.
func (v *Verifier) InFilter(hash apikey.Hash) bool { return v.filter.Load() != nil && v.inFilter(hash) }

// Waiting is how many requests wait for a poll of the feed.
func (v *Verifier) Waiting() int { return int(v.polls.waiting.Load()) }
