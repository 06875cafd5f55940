package watch

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// evaluate determines the effects of attempts that are in blocks, as one provider shows them. assigned are the effects that this reading has
// assigned already. It returns apart those whose blocks, transactions or accounts the
// provider cannot show.
func (l *loop) evaluate(ctx context.Context, provider *rpc.Provider, mined []minedAttempt, assigned map[intents.Payment][]int64) (
	found []intents.Observation, failed []unreadableAttempt, err error,
) {
	if len(mined) == 0 {
		return nil, nil, nil
	}
	inclusions, failed, err := readInclusions(ctx, provider, mined)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(inclusions, byOldEffect)
	payments := make([]intents.Payment, len(inclusions))
	classified := make(map[intents.Effect]bool, len(inclusions))
	for n, s := range inclusions {
		payments[n] = intents.Payment{AccountID: s.AccountID, Hash: s.Hash}
		if s.State == transfer.Mined {
			classified[intents.Effect{TransferID: s.TransferID, LogIndex: s.LogIndex}] = true
		}
	}
	taken, err := l.Store.TakenEffects(ctx, l.id, payments)
	if err != nil {
		return nil, nil, ofStore(err)
	}
	for n, s := range inclusions {
		for _, effect := range taken[payments[n]] {
			if !classified[effect] { // an effect that is classified again is free until then: a reorganization moves logs
				s.Taken = append(s.Taken, effect.LogIndex)
			}
		}
		s.Taken = append(s.Taken, assigned[payments[n]]...)
		o, old := s.Observation, s.Observation
		s.Intent.Judge(&o.Transaction, s.Inclusion)
		o.Block = &transfer.Block{Number: s.receipt.BlockNumber, Hash: s.receipt.BlockHash}
		o.Confirmed = old.Confirmed && effectOf(old) == effectOf(o)
		o.DueAt, o.UnknownSince = time.Time{}, time.Time{}
		if o.State == transfer.Mined {
			assigned[payments[n]] = append(assigned[payments[n]], o.LogIndex)
		}
		found = append(found, o)
	}
	return found, failed, nil
}

// byOldEffect has the effects that a reorganization moved keep their order, so that each intent keeps its own payment. Of equal intents that one
// transaction pays for, as those of a batch, the older one gets the first log.
func byOldEffect(a, b *inclusion) int {
	old := func(s *inclusion) int64 {
		if s.State == transfer.Mined {
			return s.LogIndex
		}
		return 1 << 62
	}
	return cmp.Or(cmp.Compare(old(a), old(b)), bytes.Compare(a.TransferID[:], b.TransferID[:]))
}

// inclusion is an attempt in a block with what is known of it. err is why it cannot be classified, nil while it can.
type inclusion struct {
	minedAttempt
	transfer.Inclusion
	err error
}

// readInclusions reads the blocks' times and, for native assets, the transactions and whether their sources are contracts. It asks
// for no more than the classification needs: the states of old blocks are pruned.
func readInclusions(ctx context.Context, provider *rpc.Provider, mined []minedAttempt) (inclusions []*inclusion, failed []unreadableAttempt, err error) {
	all := make([]*inclusion, len(mined))
	for n, m := range mined {
		all[n] = &inclusion{minedAttempt: m, Inclusion: transfer.Inclusion{Receipt: m.receipt}}
	}
	if err := readBlockTimes(ctx, provider, all); err != nil {
		return nil, nil, err
	}
	if err := readTransactions(ctx, provider, all); err != nil {
		return nil, nil, err
	}
	if err := readCode(ctx, provider, all); err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if s.err != nil {
			failed = append(failed, unreadableAttempt{s.Followed, s.err})
			continue
		}
		inclusions = append(inclusions, s)
	}
	return inclusions, failed, nil
}

// readBlockTimes fails attempts with errLags if the provider shows another block than the receipt's: the chain is being
// reorganized.
func readBlockTimes(ctx context.Context, provider *rpc.Provider, all []*inclusion) error {
	byNumber := map[uint64][]*inclusion{}
	var numbers []uint64
	for _, s := range all {
		if s.Intent.Type != transfer.Transfer {
			continue
		}
		if byNumber[s.receipt.BlockNumber] == nil {
			numbers = append(numbers, s.receipt.BlockNumber)
		}
		byNumber[s.receipt.BlockNumber] = append(byNumber[s.receipt.BlockNumber], s)
	}
	blocks, err := rpc.FetchEach(ctx, provider, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
	if err != nil {
		return err
	}
	for n, block := range blocks {
		for _, s := range byNumber[numbers[n]] {
			switch {
			case block.Err != nil:
				s.err = block.Err
			case block.Value == nil, block.Value.Hash != s.receipt.BlockHash:
				s.err = errLags
			default:
				s.BlockTime = block.Value.Time
			}
		}
	}
	return nil
}

// needsTransaction reports whether the transaction itself decides, and not its logs.
func (s *inclusion) needsTransaction() bool {
	return s.err == nil && s.Intent.Type == transfer.Transfer && registry.Native(s.Intent.Source.Token) && s.receipt.Succeeded && !s.Intent.Predates(s.BlockTime)
}

func readTransactions(ctx context.Context, provider *rpc.Provider, all []*inclusion) error {
	native := slices.DeleteFunc(slices.Clone(all), func(s *inclusion) bool { return !s.needsTransaction() })
	transactions, err := rpc.FetchEach(ctx, provider, native, func(s *inclusion) *rpc.Call[*evm.Transaction] { return rpc.TransactionByHash(s.Hash) })
	if err != nil {
		return err
	}
	for n, t := range transactions {
		switch {
		case t.Err != nil:
			native[n].err = t.Err
		case t.Value == nil:
			native[n].err = errLags
		default:
			native[n].Transaction = *t.Value
		}
	}
	return nil
}

// readCode reads whether the sources of native transfers that other accounts sent are contracts.
func readCode(ctx context.Context, provider *rpc.Provider, all []*inclusion) error {
	source := func(s *inclusion) common.Address { return common.HexToAddress(s.Intent.Source.Account.Address) }
	indirect := slices.DeleteFunc(slices.Clone(all), func(s *inclusion) bool { return !s.needsTransaction() || s.receipt.From == source(s) })
	codes, err := rpc.FetchEach(ctx, provider, indirect, func(s *inclusion) *rpc.Call[[]byte] {
		return rpc.Code(source(s), rpc.Number(s.receipt.BlockNumber))
	})
	if err != nil {
		return err
	}
	for n, code := range codes {
		indirect[n].err, indirect[n].SourceHasCode = code.Err, len(code.Value) > 0
	}
	return nil
}
