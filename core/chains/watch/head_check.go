package watch

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/chains/rpc"
)

// headSlack is how many blocks two honest providers' heads may differ, beside twice the depth of confirmed blocks.
const headSlack = 100

// checkHead compares the head that a provider shows with the newest block of the previous poll. A provider whose head is before it
// lags, unless most providers end before it. A head that is further ahead than the chain can have grown is checked with the others:
// were it believed, all others would lag for ever.
func (l *loop) checkHead(ctx context.Context, v *view) error {
	if v.before.Read && v.head.Number < v.before.Head {
		if v.stepsBack = l.mostEndBefore(ctx, v); !v.stepsBack {
			return errLags
		}
		return nil
	}
	slack := 2*v.definition.Confirmations + headSlack
	grown := uint64(0)
	if v.before.Read {
		elapsed := max(l.Store.Now().Sub(v.before.ReadAt), 0)
		grown = v.before.Head + 2*uint64(elapsed/max(v.definition.BlockTime, time.Millisecond))
	}
	if v.head.Number <= grown+slack {
		return nil
	}
	var contradicted error
	for _, other := range l.chain.Other(v.provider) {
		head, failure := rpc.Ask(ctx, other, rpc.BlockByNumber(rpc.Latest))
		switch {
		case failure != nil, head == nil:
		case head.Number+slack >= v.head.Number:
			l.othersDownSince = time.Time{}
			return nil
		default:
			contradicted = fmt.Errorf("%w: %s ends at block %d and %s at block %d", errContradicted, other.Host(), head.Number, v.provider.Host(), v.head.Number)
		}
	}
	if contradicted != nil {
		l.disagree(v.provider, "its head is far ahead of the others", v.head.Number)
		return contradicted
	}
	return l.unanswered(v.provider)
}

// mostEndBefore reports whether the providers of most hosts, two at least, have ended before the known head for a minute: it was
// one provider's alone.
func (l *loop) mostEndBefore(ctx context.Context, v *view) bool {
	hosts, short := map[string]bool{}, map[string]bool{v.provider.Host(): true}
	for _, p := range l.chain.All() {
		hosts[p.Host()] = true
	}
	for _, other := range l.chain.Other(v.provider) {
		head, failure := rpc.Ask(ctx, other, rpc.BlockByNumber(rpc.Latest))
		if failure == nil && head != nil && head.Number < v.before.Head {
			short[other.Host()] = true
		}
	}
	if len(short) < 2 || 2*len(short) <= len(hosts) {
		return false
	}
	if l.behindSince.IsZero() {
		l.behindSince = time.Now()
	}
	return time.Since(l.behindSince) >= singleProviderAfter
}
