package keys

import (
	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
)

// Hold keeps a verdict as if core had just been asked.
func (v *Verifier) Hold(hash apikey.Hash, verification control.Verification) {
	v.verdicts.Set(hash, newVerdict(verification, v.now()))
}

// Held is how many verdicts there are, once the cache has done what it put off.
func (v *Verifier) Held() int {
	v.verdicts.CleanUp()
	return v.verdicts.EstimatedSize()
}

// Listed reports whether there is a filter, and the key in it.
func (v *Verifier) Listed(hash apikey.Hash) bool { return v.filter.Load() != nil && v.listed(hash) }

// Waiting is how many requests wait for a reading of the feed.
func (v *Verifier) Waiting() int { return int(v.readings.waiting.Load()) }
