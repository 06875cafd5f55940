package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/token"
	"intents.internal/core/transfer"
)

const (
	// newBatch is how many attempts that were never looked up one poll takes, and dueBatch how many of the others.
	newBatch, dueBatch = 500, 20
	// maxBlockLists is how many blocks' lists of transactions are read at the most in one poll.
	maxBlockLists = 1000
)

// readAttempts finds the reported transactions that are in blocks now, and looks up those that are new or due: they may be unknown,
// replaced or too old.
func (l *loop) readAttempts(ctx context.Context, v *view) ([]postgres.Observation, error) {
	candidates, err := l.candidates(ctx, v)
	if err != nil {
		return nil, err
	}
	fresh, err := l.Store.NewAttempts(ctx, l.id, newBatch)
	if err != nil {
		return nil, ofStore(err)
	}
	due, err := l.Store.DueAttempts(ctx, l.id, dueBatch)
	if err != nil {
		return nil, ofStore(err)
	}
	due = append(fresh, due...)
	isDue := make(map[observationKey]bool, len(due))
	for _, d := range due {
		isDue[keyOf(d.Observation)] = true
	}
	candidates = slices.DeleteFunc(candidates, func(c postgres.Followed) bool { return isDue[keyOf(c.Observation)] })
	if v.fork != nil { // they are to be seen again
		above, err := l.Store.AttemptsAbove(ctx, l.id, *v.fork)
		if err != nil {
			return nil, ofStore(err)
		}
		candidates = append(candidates, above...)
	}
	mined, pending, err := l.receipts(ctx, v, append(candidates, due...))
	if err != nil {
		return nil, err
	}
	found, err := l.judge(ctx, v, mined)
	if err != nil {
		return nil, err
	}
	pending = slices.DeleteFunc(pending, func(f postgres.Followed) bool { return !isDue[keyOf(f.Observation)] })
	missing, err := l.lookUp(ctx, v, pending)
	return append(found, missing...), err
}

// candidates are the attempts that may be in one of the new blocks. There are two ways to find them, and the one that takes fewer calls
// is gone: the receipt of each attempt, or the list of each new block's transactions.
func (l *loop) candidates(ctx context.Context, v *view) ([]postgres.Followed, error) {
	first := v.before.Head + 1
	if v.fork != nil {
		first = min(first, *v.fork+1)
	}
	if !v.before.Read || v.head.Number < first {
		first = v.head.Number
	}
	blocks := v.head.Number + 1 - first
	attempts, err := l.Store.PendingAttempts(ctx, l.id, int64(min(blocks, maxBlockLists))+1)
	if err != nil || uint64(len(attempts)) <= blocks {
		return attempts, ofStore(err)
	}
	first = max(first, v.head.Number+1-min(v.head.Number+1, maxBlockLists)) // older ones are found when they are due
	var requests []rpc.Request
	var lists []*rpc.Call[*evm.Block]
	for n := first; n <= v.head.Number; n++ {
		list := rpc.BlockByNumber(rpc.Number(n))
		lists, requests = append(lists, list), append(requests, list)
	}
	if err := v.provider.Do(ctx, requests...); err != nil {
		return nil, err
	}
	var hashes []common.Hash
	for _, list := range lists {
		block, err := list.Result()
		if err != nil {
			return nil, err
		}
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
	postgres.Followed
	receipt evm.Receipt
}

// receipts parts the attempts into those that are in blocks and those that are not.
func (l *loop) receipts(ctx context.Context, v *view, attempts []postgres.Followed) (mined []minedAttempt, pending []postgres.Followed, err error) {
	calls := make([]*rpc.Call[*evm.Receipt], len(attempts))
	requests := make([]rpc.Request, len(attempts))
	for n, a := range attempts {
		calls[n] = rpc.Receipt(a.Hash)
		requests[n] = calls[n]
	}
	if len(requests) > 0 {
		if err := v.provider.Do(ctx, requests...); err != nil {
			return nil, nil, err
		}
	}
	for n, a := range attempts {
		receipt, err := calls[n].Result()
		switch {
		case err != nil:
			return nil, nil, err
		case receipt == nil:
			pending = append(pending, a)
		case receipt.BlockNumber <= v.head.Number: // a block after the head is read with its events by the next poll
			mined = append(mined, minedAttempt{a, *receipt})
		}
	}
	return mined, pending, nil
}

// judge finds what attempts that are in blocks did.
func (l *loop) judge(ctx context.Context, v *view, mined []minedAttempt) ([]postgres.Observation, error) {
	if len(mined) == 0 {
		return nil, nil
	}
	evidence, err := l.gather(ctx, v, mined)
	if err != nil {
		return nil, err
	}
	payments := make([]postgres.Payment, len(mined))
	for n, m := range mined {
		payments[n] = postgres.Payment{AccountID: m.AccountID, Hash: m.Hash}
	}
	taken, err := l.Store.TakenEffects(ctx, l.id, payments)
	if err != nil {
		return nil, ofStore(err)
	}
	found := make([]postgres.Observation, len(mined))
	for n, m := range mined {
		sighting := evidence[n]
		o, old := m.Observation, m.Observation
		sighting.Taken = taken[payments[n]]
		if old.State == transfer.Mined { // by this intent itself
			sighting.Taken = slices.DeleteFunc(slices.Clone(sighting.Taken), func(index int64) bool { return index == old.LogIndex })
		}
		o.State, o.LogIndex = m.Intent.JudgeAttempt(sighting)
		o.Block = &transfer.Block{Number: m.receipt.BlockNumber, Hash: m.receipt.BlockHash}
		o.Confirmed = old.Confirmed && old.State == o.State && *old.Block == *o.Block
		o.DueAt, o.UnknownSince = time.Time{}, time.Time{}
		if o.State == transfer.Mined {
			taken[payments[n]] = append(taken[payments[n]], o.LogIndex)
		}
		found[n] = o
	}
	return found, nil
}

// gather reads what else the judgement of transfers needs: the block's time and, for native assets, the transaction itself and whether
// the source is a contract.
func (l *loop) gather(ctx context.Context, v *view, mined []minedAttempt) ([]transfer.Sighting, error) {
	var requests []rpc.Request
	blocks := map[uint64]*rpc.Call[*evm.Block]{}
	transactions := map[int]*rpc.Call[*evm.Transaction]{}
	codes := map[int]*rpc.Call[[]byte]{}
	for n, m := range mined {
		if m.Intent.Type != transfer.Transfer {
			continue
		}
		if blocks[m.receipt.BlockNumber] == nil {
			blocks[m.receipt.BlockNumber] = rpc.BlockByNumber(rpc.Number(m.receipt.BlockNumber))
			requests = append(requests, blocks[m.receipt.BlockNumber])
		}
		if !token.Native(m.Intent.Source.Token) {
			continue
		}
		source := common.HexToAddress(m.Intent.Source.Account.Address)
		transactions[n] = rpc.TransactionByHash(m.Hash)
		codes[n] = rpc.Code(source, rpc.Number(m.receipt.BlockNumber))
		requests = append(requests, transactions[n])
		if m.receipt.From != source {
			requests = append(requests, codes[n])
		}
	}
	if len(requests) > 0 {
		if err := v.provider.Do(ctx, requests...); err != nil {
			return nil, err
		}
	}
	sightings := make([]transfer.Sighting, len(mined))
	for n, m := range mined {
		s := transfer.Sighting{Receipt: m.receipt}
		if call := blocks[m.receipt.BlockNumber]; call != nil && m.Intent.Type == transfer.Transfer {
			block, err := call.Result()
			if err != nil {
				return nil, err
			}
			if block == nil || block.Hash != m.receipt.BlockHash {
				return nil, errLags // the chain is being reorganized
			}
			s.BlockTime = block.Time
		}
		if call := transactions[n]; call != nil {
			t, err := call.Result()
			if err != nil {
				return nil, err
			}
			if t == nil {
				return nil, errLags
			}
			s.Transaction = *t
			if m.receipt.From != common.HexToAddress(m.Intent.Source.Account.Address) {
				code, err := codes[n].Result()
				if err != nil {
					return nil, err
				}
				s.SourceHasCode = len(code) > 0
			}
		}
		sightings[n] = s
	}
	return sightings, nil
}
