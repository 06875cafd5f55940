package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
)

const (
	// maxLookUps bounds the due attempts that one poll looks up. minLookUps is how many it looks up at a slow provider.
	maxLookUps, minLookUps = 500, 20
	// callsPerLookUp is about how many calls it takes to look up an attempt that no provider knows.
	callsPerLookUp = 3
	// maxBlockLists is the maximum number of blocks whose transaction lists one poll reads.
	maxBlockLists = 1000
)

// readAttempts finds the reported transactions that are in blocks now, and looks up those that are due: they may be new, unknown,
// replaced or too old. An attempt that no provider can show backs off alone.
func (l *loop) readAttempts(ctx context.Context, v *view) ([]intents.Observation, error) {
	due, next, err := l.Store.DueAttempts(ctx, l.id, l.served, l.lookUps(v.provider))
	if err != nil {
		return nil, ofStore(err)
	}
	l.served = next
	due, later := l.withinBudget(due)
	isDue := make(map[intents.TransactionKey]bool, len(due))
	for _, d := range due {
		isDue[d.Key()] = true
	}
	candidates, err := l.candidates(ctx, v)
	if err != nil {
		return nil, err
	}
	candidates = slices.DeleteFunc(candidates, func(c intents.Followed) bool { return isDue[c.Key()] || l.backedOff(c) })
	candidates = append(candidates, v.displacedAttempts()...) // they must be found again
	found, pending, failed, err := l.classify(ctx, v, v.provider, append(candidates, due...))
	if err != nil {
		return nil, err
	}
	pending = slices.DeleteFunc(pending, func(f intents.Followed) bool { return !isDue[f.Key()] })
	missing, unreadable, err := l.lookUp(ctx, v, pending)
	if err != nil {
		return nil, err
	}
	elsewhere, failed := l.classifyElsewhere(ctx, v, failed)
	later = slices.DeleteFunc(later, func(o intents.Observation) bool { // it is in a block
		return slices.ContainsFunc(found, func(f intents.Observation) bool { return f.Key() == o.Key() })
	})
	return slices.Concat(found, missing, elsewhere, l.backOff(append(failed, unreadable...)), later), nil
}

// lookUps is how many due attempts a poll looks up: with half of the calls that the provider answers between two polls, so that attempts that
// nobody knows do not delay the chain's other transactions.
func (l *loop) lookUps(provider *rpc.Provider) int {
	return min(max(provider.CallsWithin(l.period())/callsPerLookUp/2, minLookUps), maxLookUps)
}

// candidates returns the attempts that may be in one of the new blocks. It uses whichever needs fewer calls: the receipt of each
// attempt, or the list of each new block's transactions.
func (l *loop) candidates(ctx context.Context, v *view) ([]intents.Followed, error) {
	first := v.before.Head + 1
	if v.fork != nil {
		first = min(first, *v.fork+1)
	}
	if !v.before.Read || v.head.Number < first {
		first = v.head.Number
	}
	blocks := v.head.Number + 1 - first
	attempts, err := l.Store.PendingAttempts(ctx, l.id, int64(min(blocks, maxBlockLists))+1)
	if err != nil {
		return nil, ofStore(err)
	}
	if uint64(len(attempts)) <= blocks && !slices.ContainsFunc(attempts, func(f intents.Followed) bool { return !l.mayLookUp(f.AccountID) }) {
		return attempts, nil
	}
	first = max(first, v.head.Number+1-min(v.head.Number+1, maxBlockLists)) // older ones are found when they are due
	var numbers []uint64
	for n := first; n <= v.head.Number; n++ {
		numbers = append(numbers, n)
	}
	lists, err := rpc.FetchAll(ctx, v.provider, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
	if err != nil {
		return nil, err
	}
	var hashes []common.Hash
	for _, block := range lists {
		if block == nil {
			return nil, errLags
		}
		hashes = append(hashes, block.Transactions...)
	}
	attempts, err = l.Store.PendingAmong(ctx, l.id, hashes)
	return attempts, ofStore(err)
}

// minedAttempt is an attempt with its receipt.
type minedAttempt struct {
	intents.Followed
	receipt evm.Receipt
}

// unreadableAttempt is an attempt that a provider cannot show: its receipt cannot be decoded, or the state of its block is pruned.
type unreadableAttempt struct {
	intents.Followed
	err error
}

// classify determines the effects of the attempts that are in blocks, as one provider shows them. pending are those without a receipt.
// The returned error is of the provider or the database.
func (l *loop) classify(ctx context.Context, v *view, provider *rpc.Provider, attempts []intents.Followed) (
	found []intents.Observation, pending []intents.Followed, failed []unreadableAttempt, err error,
) {
	receipts, err := l.receipts(ctx, v, provider, attempts)
	if err != nil {
		return nil, nil, nil, err
	}
	var mined []minedAttempt
	for n, a := range attempts {
		switch receipt := receipts[n]; {
		case receipt.Err != nil:
			failed = append(failed, unreadableAttempt{a, receipt.Err})
		case receipt.Value == nil:
			pending = append(pending, a)
		case receipt.Value.BlockNumber <= v.head.Number: // the next poll reads a block after the head together with its events
			mined = append(mined, minedAttempt{a, *receipt.Value})
		}
	}
	found, unseen, err := l.evaluate(ctx, provider, mined, v.assigned)
	return found, pending, append(failed, unseen...), err
}

// classifyElsewhere classifies attempts that the poll's provider cannot show as the others show them. It returns those that none can.
func (l *loop) classifyElsewhere(ctx context.Context, v *view, failed []unreadableAttempt) ([]intents.Observation, []unreadableAttempt) {
	var all []intents.Observation
	for _, other := range l.chain.Other(v.provider) {
		if len(failed) == 0 {
			break
		}
		errs := make(map[intents.TransactionKey]error, len(failed))
		attempts := make([]intents.Followed, len(failed))
		for n, f := range failed {
			errs[f.Key()], attempts[n] = f.err, f.Followed
		}
		found, pending, still, err := l.classify(ctx, v, other, attempts)
		if err != nil {
			continue
		}
		all = append(all, found...)
		failed = still
		for _, p := range pending {
			failed = append(failed, unreadableAttempt{p, errs[p.Key()]})
		}
	}
	return all, failed
}

// longestBackOff is the maximum time between two look-ups of an attempt that no provider can show.
const longestBackOff = time.Hour

// maxBackedOff bounds the attempts whose back-off is remembered between polls. Those beyond it may be tried earlier.
const maxBackedOff = 10_000

// backOff reschedules attempts that no provider can show, later and later.
func (l *loop) backOff(failed []unreadableAttempt) (later []intents.Observation) {
	if len(failed) == 0 {
		return nil
	}
	l.unreadable(failed)
	if len(l.retryAt) > maxBackedOff {
		clear(l.retryAt)
	}
	now := l.Store.Now()
	for _, f := range failed {
		if f.Block != nil { // its block has changed, and it becomes pending unless it is found again
			continue
		}
		o := f.Observation
		o.DueAt = l.nextLookUp(o, now, longestBackOff)
		l.retryAt[o.Key()] = o.DueAt
		later = append(later, o)
	}
	return later
}

// backedOff reports whether an attempt could not be shown and is not due again.
func (l *loop) backedOff(f intents.Followed) bool {
	at, ok := l.retryAt[f.Key()]
	if ok && !l.Store.Now().Before(at) {
		delete(l.retryAt, f.Key())
		return false
	}
	return ok
}

// unreadable counts attempts that no provider can show, and logs one of them.
func (l *loop) unreadable(failed []unreadableAttempt) {
	l.metrics.unreadableAttempts(len(failed))
	if _, due := l.unreadableLogs.Due(); !due {
		return
	}
	l.log.Warn("reported transactions cannot be classified; they are tried again later", "transactions", len(failed),
		"transfer_id", failed[0].TransferID, "hash", failed[0].Hash.Hex(), "error", failed[0].err)
}
