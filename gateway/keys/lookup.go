package keys

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"
	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/tracing"
)

// lookUp is one question to core that all concurrent requests with the same key share.
type lookUp struct {
	// span is that of the request that asks.
	span trace.Span
	done chan struct{}
	// verdict and err are the result, ErrUnavailable until core has answered.
	verdict *Verdict
	err     error
	// invalidated says that the key changed during the look-up: the answer may be outdated and is not cached. Guarded by
	// Verifier.mu.
	invalidated bool
}

// lookUpSpan is the wait for a look-up.
const lookUpSpan = "key look-up"

// lookUp asks core about the key in one of these slots, or joins the look-up under way.
func (v *Verifier) lookUp(span trace.Span, hash apikey.Hash, slots chan struct{}) (*Verdict, error) {
	v.mu.Lock()
	if verdict, err := v.cached(hash, v.now()); !errors.Is(err, ErrNotCached) { // a look-up has just ended
		v.mu.Unlock()
		return verdict, err
	}
	l, underWay := v.lookUps[hash]
	if !underWay {
		l = &lookUp{span: tracing.Start(span, lookUpSpan), done: make(chan struct{}), err: ErrUnavailable}
		v.lookUps[hash] = l
	}
	v.mu.Unlock()

	if underWay {
		l.await(span)
	} else {
		v.perform(hash, l, slots)
	}
	return l.verdict, l.err
}

// await waits in bounded time: perform has a deadline.
func (l *lookUp) await(span trace.Span) {
	joined := tracing.Start(span, lookUpSpan)
	tracing.Link(joined, l.span)
	<-l.done
	joined.End()
}

func (v *Verifier) perform(hash apikey.Hash, l *lookUp, slots chan struct{}) {
	defer v.finish(hash, l) // after a panic, too
	l.verdict, l.err = v.askCore(l.span, hash, slots)
}

// finish caches the result and releases all who wait for it.
func (v *Verifier) finish(hash apikey.Hash, l *lookUp) {
	defer close(l.done)
	if errors.Is(l.err, ErrUnavailable) {
		v.metrics.lookUpsFailed.Inc()
		tracing.Fail(l.span, "unavailable")
	}
	l.span.End()

	v.mu.Lock()
	defer v.mu.Unlock()
	if l.invalidated {
		return // a newer look-up may have taken its place
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

// askCore waits for a slot and asks core.
func (v *Verifier) askCore(span trace.Span, hash apikey.Hash, slots chan struct{}) (*Verdict, error) {
	ctx, cancel := context.WithTimeout(trace.ContextWithSpan(context.Background(), span), v.lookUpTimeout)
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

// logLookUp logs the first failed look-up of a row and then one every logEvery.
func (v *Verifier) logLookUp(err error) {
	if suppressed, due := v.lookUpLogs.Due(); due {
		v.log.Warn("key look-up failed", "error", err, "suppressed", suppressed)
	}
}

// invalidate drops what is cached of the keys, adds them to the filter, and keeps the look-ups under way from being cached
// or joined.
func (v *Verifier) invalidate(hashes []apikey.Hash) {
	if filter := v.filter.Load(); filter != nil {
		addTo(filter, hashes) // before refusals are dropped, see refuseUnknown
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, hash := range hashes {
		if l, underWay := v.lookUps[hash]; underWay {
			l.invalidated = true
			delete(v.lookUps, hash)
		}
		v.verdicts.Invalidate(hash)
		v.refusals.Invalidate(hash)
	}
}

// invalidateAll does so for every key. The filter stays: it may lack keys, and has those of before.
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
