package watch

import (
	"context"
	"slices"
	"time"

	"intents.internal/core/intents"
)

const (
	// rereadPart is the part of the provider's calls with which failed attempts are read again, and minReread how many a poll reads of them at
	// least.
	rereadPart, minReread = 20, 5
)

// reread reads failed attempts again that are due, slowly: what both hosts showed may have been wrong, as behind one load balancer. An
// attempt whose effect two hosts show now is taken over, and one that they show in no block is pending again. A backlog comes first.
func (l *loop) reread(ctx context.Context, v *view) error {
	if v.to < v.head.Number {
		return nil
	}
	limit := max(v.provider.CallsWithin(l.period())/rereadPart, minReread)
	due, next, err := l.Store.DueFailed(ctx, l.id, l.rereadAfter, limit)
	if err != nil || len(due) == 0 {
		return ofStore(err)
	}
	l.rereadAfter = next
	c, err := l.compare(ctx, v, due)
	if err != nil {
		return err
	}
	result := map[intents.TransactionKey]intents.Observation{}
	for _, o := range c.seen {
		result[o.Key()] = o
	}
	isGone := func(f intents.Followed) bool {
		return slices.ContainsFunc(c.gone, func(o intents.Observation) bool { return o.Key() == f.Key() })
	}
	write, now := intents.ChainWrite{Gone: c.gone}, l.Store.Now()
	for _, f := range slices.DeleteFunc(due, isGone) {
		o, decided := result[f.Key()]
		if !decided {
			o = f.Observation
		}
		if o.DueAt = (time.Time{}); o.Failed() {
			o.DueAt = intents.NextReread(o.Transaction, now)
		}
		write.Seen = append(write.Seen, o)
	}
	_, err = l.writeChain(ctx, write)
	return ofStore(err)
}

// reviveReplaced returns the attempts that a reorganization below the confirmed block may have freed of what replaced them: they are
// pending again, and their senders' nonces are read anew.
func (l *loop) reviveReplaced(ctx context.Context, v *view) ([]intents.Observation, error) {
	if v.fork == nil || *v.fork >= v.before.Confirmed {
		return nil, nil
	}
	replaced, err := l.Store.ReplacedSince(ctx, l.id, v.forkTime)
	return replaced, ofStore(err)
}
