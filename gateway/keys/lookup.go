package keys

import (
	"context"
	"errors"

	"intents.internal/gateway/control"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/tracing"
)

// lookUp is one question to core that everyone who asks the same waits for.
type lookUp struct {
	// bucket is the budget it is on, empty for none.
	bucket string
	// span is that of whoever asks.
	span    tracing.Span
	done    chan struct{}
	verdict *Verdict
	err     error
	// overtaken says that the key changed while core was being asked: the answer may be the old one and is not kept.
	// Guarded by Verifier.mu.
	overtaken bool
}

// lookUpSpan is what a request spends waiting for a look-up.
const lookUpSpan = "key look-up"

// ask looks the key up at core on the budget of this bucket, if any, together with whoever else is asking.
func (v *Verifier) ask(span tracing.Span, hash apikey.Hash, bucket string) (*Verdict, error) {
	for {
		v.mu.Lock()
		switch verdict, known := v.recall(hash, v.now()); known { // a look-up may just have ended
		case usable:
			v.mu.Unlock()
			return verdict, nil
		case unusable:
			v.mu.Unlock()
			return nil, ErrRefused
		case nothing, outdated:
		}
		l, underway := v.lookUps[hash]
		if !underway {
			l = &lookUp{bucket: bucket, span: span.Start(lookUpSpan, tracing.Internal), done: make(chan struct{})}
			v.lookUps[hash] = l
		}
		v.mu.Unlock()
		if !underway {
			v.perform(hash, l)
		} else {
			l.await(span)
		}
		if errors.As(l.err, new(BudgetError)) && l.bucket != bucket {
			continue // somebody else's budget is used up
		}
		return l.verdict, l.err
	}
}

// await waits in bounded time: perform has a deadline.
func (l *lookUp) await(span tracing.Span) {
	joined := span.Start(lookUpSpan, tracing.Internal)
	joined.Link(l.span)
	<-l.done
	joined.End()
}

func (v *Verifier) perform(hash apikey.Hash, l *lookUp) {
	defer close(l.done)
	l.verdict, l.err = v.verdictFromCore(l.span, hash, l.bucket)
	if errors.Is(l.err, ErrUnavailable) {
		l.span.Fail("unavailable")
	}
	l.span.End()

	v.mu.Lock()
	defer v.mu.Unlock()
	if l.overtaken {
		return // a newer look-up may hold the place
	}
	delete(v.lookUps, hash)
	switch {
	case l.err == nil:
		v.unknown.Invalidate(hash)
		v.verdicts.Set(hash, l.verdict)
	case errors.Is(l.err, ErrRefused):
		v.verdicts.Invalidate(hash)
		v.unknown.Set(hash, struct{}{})
	}
}

func (v *Verifier) verdictFromCore(span tracing.Span, hash apikey.Hash, bucket string) (verdict *Verdict, err error) {
	ctx, cancel := context.WithTimeout(span.In(context.Background()), v.lookUpTimeout)
	defer cancel()
	if bucket == "" {
		return v.verify(ctx, hash)
	}
	crowd := v.strangers
	if v.filter.has(hash) {
		crowd = v.mistaken // hardly ever: it is there
	}
	if !crowd.enter(v.now()) { // before it costs anything
		v.metrics.crowdedOut.Inc()
		return nil, ErrUnavailable
	}
	defer func() { crowd.leave(errors.Is(err, ErrRefused)) }()
	leave, err := v.lanes.enter(ctx, bucket)
	if err != nil {
		v.metrics.lookUpsFailed.Inc()
		return nil, ErrUnavailable
	}
	defer leave()
	rule := *v.unknownRule.Load() // what is given back was taken by the same
	if d := v.limiter.Reserve(bucket, rule); !d.Allowed {
		return nil, BudgetError{d}
	}
	verdict, err = v.verify(ctx, hash)
	if !errors.Is(err, ErrRefused) {
		v.limiter.Return(bucket, rule)
	}
	return verdict, err
}

// verify asks core.
func (v *Verifier) verify(ctx context.Context, hash apikey.Hash) (*Verdict, error) {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		v.metrics.lookUpsFailed.Inc()
		return nil, ErrUnavailable
	}
	asked := v.now()
	verification, err := v.core.VerifyKey(ctx, hash)
	switch {
	case errors.Is(err, control.ErrUnknownKey):
		v.metrics.lookUpsUnknown.Inc()
		return nil, ErrRefused
	case err != nil:
		v.metrics.lookUpsFailed.Inc()
		v.log.Debug("key look-up failed", "error", err)
		return nil, ErrUnavailable
	}
	v.metrics.lookUpsUsable.Inc()
	return newVerdict(verification, asked), nil
}

// drop forgets what is known of the keys and keeps look-ups under way from being remembered or joined.
func (v *Verifier) drop(hashes []apikey.Hash) {
	v.filter.add(hashes) // a new key is a change as well
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, hash := range hashes {
		if l, underway := v.lookUps[hash]; underway {
			l.overtaken = true
			delete(v.lookUps, hash)
		}
		v.verdicts.Invalidate(hash)
		v.unknown.Invalidate(hash)
	}
}

// dropAll does to every key what drop does to some.
func (v *Verifier) dropAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.lookUps {
		l.overtaken = true
	}
	clear(v.lookUps)
	v.verdicts.InvalidateAll()
	v.unknown.InvalidateAll()
}
