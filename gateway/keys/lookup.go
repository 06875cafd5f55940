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
	// bucket is the budget it is on, empty for none, and crowd what is counted besides, nil without a budget.
	bucket string
	crowd  *strangers
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
		l, begun, verdict, err := v.join(span, hash, bucket)
		switch {
		case l == nil:
			return verdict, err
		case begun:
			v.perform(hash, l)
		default:
			l.await(span)
		}
		if _, over := errors.AsType[BudgetError](l.err); over && l.bucket != bucket {
			continue // somebody else's budget is used up
		}
		return l.verdict, l.err
	}
}

// join gives the key's look-up that is under way, or one that has begun and is the caller's to perform. There is none where one
// has just ended, whose verdict or error it gives instead, or where strangers have used up all look-ups.
func (v *Verifier) join(span tracing.Span, hash apikey.Hash, bucket string) (l *lookUp, begun bool, verdict *Verdict, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch verdict, known := v.recall(hash, v.now()); known {
	case usable:
		return nil, false, verdict, nil
	case unusable:
		return nil, false, nil, ErrRefused
	case nothing, outdated:
	}
	if l, underway := v.lookUps[hash]; underway {
		return l, false, nil, nil
	}
	crowd := v.crowd(hash, bucket)
	if crowd != nil && !crowd.enter(v.now()) { // before it costs anything
		v.metrics.crowdedOut.Inc()
		return nil, false, nil, ErrUnavailable
	}
	l = &lookUp{bucket: bucket, crowd: crowd, span: span.Start(lookUpSpan, tracing.Internal), done: make(chan struct{})}
	v.lookUps[hash] = l
	return l, true, nil, nil
}

// crowd is what a look-up of the key on this budget is counted with.
func (v *Verifier) crowd(hash apikey.Hash, bucket string) *strangers {
	switch {
	case bucket == "":
		return nil
	case v.filter.has(hash):
		return v.mistaken // hardly ever: it is there
	default:
		return v.strangers
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
	if l.crowd != nil {
		l.crowd.leave(errors.Is(l.err, ErrRefused))
	}
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

func (v *Verifier) verdictFromCore(span tracing.Span, hash apikey.Hash, bucket string) (*Verdict, error) {
	ctx, cancel := context.WithTimeout(span.In(context.Background()), v.lookUpTimeout)
	defer cancel()
	if bucket == "" {
		return v.verify(ctx, hash)
	}
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
	verdict, err := v.verify(ctx, hash)
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
