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
	// newBatch is how many new attempts one poll looks up, and dueBatch how many attempts that are due again.
	newBatch, dueBatch = 500, 20
	// maxBlockLists is the maximum number of blocks whose transaction lists one poll reads.
	maxBlockLists = 1000
)

// readAttempts finds the reported transactions that are in blocks now, and looks up those that are new or due: they may be
// unknown, replaced or too old.
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
	isDue := make(map[postgres.TransactionKey]bool, len(due))
	for _, d := range due {
		isDue[d.Key()] = true
	}
	candidates = slices.DeleteFunc(candidates, func(c postgres.Followed) bool { return isDue[c.Key()] })
	candidates = append(candidates, v.displacedAttempts()...) // they must be found again
	mined, pending, err := l.receipts(ctx, v, append(candidates, due...))
	if err != nil {
		return nil, err
	}
	found, err := l.evaluate(ctx, v, mined)
	if err != nil {
		return nil, err
	}
	pending = slices.DeleteFunc(pending, func(f postgres.Followed) bool { return !isDue[f.Key()] })
	missing, err := l.lookUp(ctx, v, pending)
	return append(found, missing...), err
}

// candidates returns the attempts that may be in one of the new blocks. It uses whichever needs fewer calls: the receipt of each
// attempt, or the list of each new block's transactions.
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
	var numbers []uint64
	for n := first; n <= v.head.Number; n++ {
		numbers = append(numbers, n)
	}
	lists, err := rpc.AskEach(ctx, v.provider, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
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
	postgres.Followed
	receipt evm.Receipt
}

// receipts splits the attempts into those that are in blocks and those that are not.
func (l *loop) receipts(ctx context.Context, v *view, attempts []postgres.Followed) (mined []minedAttempt, pending []postgres.Followed, err error) {
	receipts, err := receiptsOf(ctx, v.provider, attempts)
	if err != nil {
		return nil, nil, err
	}
	for n, a := range attempts {
		switch receipt := receipts[n]; {
		case receipt == nil:
			pending = append(pending, a)
		case receipt.BlockNumber <= v.head.Number: // the next poll reads a block after the head together with its events
			mined = append(mined, minedAttempt{a, *receipt})
		}
	}
	return mined, pending, nil
}

// evaluate determines the effects of attempts that are in blocks.
func (l *loop) evaluate(ctx context.Context, v *view, mined []minedAttempt) ([]postgres.Observation, error) {
	if len(mined) == 0 {
		return nil, nil
	}
	sightings, err := l.readSightings(ctx, v, mined)
	if err != nil {
		return nil, err
	}
	payments := make([]postgres.Payment, len(mined))
	for n, m := range mined {
		payments[n] = postgres.Payment{AccountID: m.AccountID, Hash: m.Hash}
	}
	assigned, err := l.Store.TakenEffects(ctx, l.id, payments)
	if err != nil {
		return nil, ofStore(err)
	}
	found := make([]postgres.Observation, len(mined))
	for n, m := range mined {
		sighting := sightings[n]
		o, old := m.Observation, m.Observation
		sighting.Taken = slices.Concat(assigned[payments[n]], v.assigned[payments[n]])
		if old.State == transfer.Mined { // by this intent itself
			sighting.Taken = slices.DeleteFunc(sighting.Taken, func(index int64) bool { return index == old.LogIndex })
		}
		o.State, o.LogIndex = m.Intent.JudgeAttempt(sighting)
		o.Block = &transfer.Block{Number: m.receipt.BlockNumber, Hash: m.receipt.BlockHash}
		o.Confirmed = old.Confirmed && old.State == o.State && *old.Block == *o.Block
		o.DueAt, o.UnknownSince = time.Time{}, time.Time{}
		if o.State == transfer.Mined {
			v.assigned[payments[n]] = append(v.assigned[payments[n]], o.LogIndex)
		}
		found[n] = o
	}
	return found, nil
}

// sightingCalls are the additional calls that evaluating a transfer needs, nil if it needs none.
type sightingCalls struct {
	block *rpc.Call[*evm.Block]
	// transaction and code are for native assets: the transaction itself, and the source's code if another account sent it.
	transaction *rpc.Call[*evm.Transaction]
	code        *rpc.Call[[]byte]
}

// readSightings reads the blocks' times and, for native assets, the transactions and whether their sources are contracts.
func (l *loop) readSightings(ctx context.Context, v *view, mined []minedAttempt) ([]transfer.Sighting, error) {
	all := make([]sightingCalls, len(mined))
	blocks := map[uint64]*rpc.Call[*evm.Block]{}
	var requests []rpc.Request
	for n, m := range mined {
		if m.Intent.Type != transfer.Transfer {
			continue
		}
		number := rpc.Number(m.receipt.BlockNumber)
		if blocks[m.receipt.BlockNumber] == nil {
			blocks[m.receipt.BlockNumber] = rpc.BlockByNumber(number)
			requests = append(requests, blocks[m.receipt.BlockNumber])
		}
		all[n].block = blocks[m.receipt.BlockNumber]
		if !token.Native(m.Intent.Source.Token) {
			continue
		}
		all[n].transaction = rpc.TransactionByHash(m.Hash)
		requests = append(requests, all[n].transaction)
		if source := common.HexToAddress(m.Intent.Source.Account.Address); m.receipt.From != source {
			all[n].code = rpc.Code(source, number)
			requests = append(requests, all[n].code)
		}
	}
	if len(requests) > 0 {
		if err := v.provider.Do(ctx, requests...); err != nil {
			return nil, err
		}
	}
	sightings := make([]transfer.Sighting, len(mined))
	for n, m := range mined {
		var err error
		if sightings[n], err = all[n].sighting(m.receipt); err != nil {
			return nil, err
		}
	}
	return sightings, nil
}

// sighting returns errLags if the provider shows another block than the receipt's: the chain is being reorganized.
func (c sightingCalls) sighting(receipt evm.Receipt) (transfer.Sighting, error) {
	s := transfer.Sighting{Receipt: receipt}
	if c.block != nil {
		block, err := c.block.Result()
		if err != nil {
			return s, err
		}
		if block == nil || block.Hash != receipt.BlockHash {
			return s, errLags
		}
		s.BlockTime = block.Time
	}
	if c.transaction != nil {
		t, err := c.transaction.Result()
		if err != nil {
			return s, err
		}
		if t == nil {
			return s, errLags
		}
		s.Transaction = *t
	}
	if c.code != nil {
		code, err := c.code.Result()
		if err != nil {
			return s, err
		}
		s.SourceHasCode = len(code) > 0
	}
	return s, nil
}
