package keys

import (
	"context"
	"errors"

	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
)

// lookUp is one call to core that all concurrent requests with the same key share.
type lookUp struct {
	done chan struct{}
	// verdict and err are the result, ErrUnavailable until core has answered.
	verdict *Verdict
	err     error
	// invalidated is set if the key changed during the look-up. Then the response is not cached. Guarded by Verifier.mu.
	invalidated bool
}

// lookUp verifies the key at core within one of these slots, or joins the look-up in flight.
func (v *Verifier) lookUp(hash apikey.Hash, slots chan struct{}) (*Verdict, error) {
	v.mu.Lock()
	if verdict, err := v.cached(hash, v.now()); !errors.Is(err, ErrNotCached) { // a look-up has just finished
		v.mu.Unlock()
		return verdict, err
	}
	l, inFlight := v.lookUps[hash]
	if !inFlight {
		l = &lookUp{done: make(chan struct{}), err: ErrUnavailable}
		v.lookUps[hash] = l
	}
	v.mu.Unlock()

	if inFlight {
		<-l.done // it has a deadline
	} else {
		v.runLookUp(hash, l, slots)
	}
	return l.verdict, l.err
}

func (v *Verifier) runLookUp(hash apikey.Hash, l *lookUp, slots chan struct{}) {
	defer v.finishLookUp(hash, l) // also after a panic
	l.verdict, l.err = v.askCore(hash, slots)
}

// finishLookUp caches the result and releases the requests that wait for it.
func (v *Verifier) finishLookUp(hash apikey.Hash, l *lookUp) {
	defer close(l.done)
	if errors.Is(l.err, ErrUnavailable) {
		v.metrics.lookUpsFailed.Inc()
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	if l.invalidated {
		return // v.lookUps may hold a newer look-up
	}
	delete(v.lookUps, hash)
	switch {
	case l.err == nil:
		v.refusals.Invalidate(hash)
		v.verdicts.Set(hash, l.verdict)
	case errors.Is(l.err, ErrRefused):
		v.verdicts.Invalidate(hash)
		v.refusals.Set(hash, refusal{ErrRefused})
	}
}

// askCore waits for a slot and verifies the key at core.
func (v *Verifier) askCore(hash apikey.Hash, slots chan struct{}) (*Verdict, error) {
	ctx, cancel := context.WithTimeout(context.Background(), v.lookUpTimeout)
	defer cancel()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		v.logLookUp(errors.New("all look-ups are in use, see GATEWAY_KEY_LOOKUPS and GATEWAY_KEY_LOOKUP_TIMEOUT"))
		return nil, ErrUnavailable
	}
	askedAt := v.now()
	verification, err := v.core.VerifyKey(ctx, hash)
	switch {
	case errors.Is(err, control.ErrUnknownKey):
		v.metrics.lookUpsRefused.Inc()
		return nil, ErrRefused
	case err != nil:
		v.logLookUp(err)
		return nil, ErrUnavailable
	}
	v.metrics.lookUpsUsable.Inc()
	return newVerdict(verification, askedAt), nil
}

// logLookUp logs the first of consecutive failed look-ups, then one every logEvery.
func (v *Verifier) logLookUp(err error) {
	if suppressed, due := v.lookUpLogs.Due(); due {
		v.log.Warn("key look-up failed", "error", err, "suppressed", suppressed)
	}
}

// invalidate removes the keys from the caches and adds them to the filter. Their look-ups in flight are neither cached nor
// joined.
func (v *Verifier) invalidate(hashes []apikey.Hash) {
	if filter := v.filter.Load(); filter != nil {
		addTo(filter, hashes) // before the refusals are invalidated, see refuseUnknown
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, hash := range hashes {
		if l, inFlight := v.lookUps[hash]; inFlight {
			l.invalidated = true
			delete(v.lookUps, hash)
		}
		v.verdicts.Invalidate(hash)
		v.refusals.Invalidate(hash)
	}
}

// invalidateAll invalidates every key. The filter stays, though it may lack new keys.
func (v *Verifier) invalidateAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.lookUps {
		l.invalidated = true
	}
	clear(v.lookUps)
	v.verdicts.InvalidateAll()
	v.refusals.InvalidateAll()
}
