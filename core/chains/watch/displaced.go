package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
)

// findDisplaced checks what is recorded of blocks that are read for the first time since a reorganization. It returns the
// transactions that are not in their blocks any more, once a second provider shows the same. absent are the recorded transactions
// of the window that no event of this poll shows.
func (l *loop) findDisplaced(ctx context.Context, v *view, absent map[postgres.TransactionKey]postgres.Observation) ([]postgres.Followed, error) {
	if v.to <= v.checkAbove() {
		return nil, nil
	}
	recorded, err := l.Store.FollowedBetween(ctx, l.id, v.checkAbove(), v.to)
	if err != nil {
		return nil, ofStore(err)
	}
	recorded = slices.DeleteFunc(recorded, func(f postgres.Followed) bool {
		_, ok := absent[f.Key()]
		return !ok
	})
	displaced, kept, err := displacedAt(ctx, v.provider, recorded)
	if err != nil {
		return nil, err
	}
	for _, f := range kept {
		if isEvent(f.Observation) {
			return nil, l.missingEvent(v.provider, f.Observation)
		}
	}
	if len(displaced) == 0 {
		return nil, nil
	}
	return displaced, l.crossCheckDisplaced(ctx, v, displaced)
}

// crossCheckDisplaced returns an error unless another provider shows too that the transactions are not in their blocks.
func (l *loop) crossCheckDisplaced(ctx context.Context, v *view, displaced []postgres.Followed) error {
	var contradicted error
	for _, other := range l.chain.Other(v.provider) {
		_, kept, failure := displacedAt(ctx, other, displaced)
		switch {
		case failure != nil:
		case len(kept) == 0:
			l.othersDownSince = time.Time{}
			return nil
		default:
			l.disagree(other, "a transaction is still in its block", kept[0].Block.Number)
			contradicted = fmt.Errorf("%w: %s shows %s in block %d", errContradicted, other.Host(), kept[0].Hash, kept[0].Block.Number)
		}
	}
	if contradicted != nil {
		return contradicted
	}
	return l.unanswered(v.provider)
}

// displacedAt splits transactions into those that a provider shows not to be in their blocks, and those that are there or may be:
// a provider that shows the block with the transaction and has no receipt is no proof.
func displacedAt(ctx context.Context, provider *rpc.Provider, recorded []postgres.Followed) (displaced, kept []postgres.Followed, err error) {
	blocks, err := blocksOf(ctx, provider, recorded)
	if err != nil {
		return nil, nil, err
	}
	var events []postgres.Followed
	for _, f := range recorded {
		block := blocks[f.Block.Number]
		switch included := block.Hash == f.Block.Hash && slices.Contains(block.Transactions, f.Hash); {
		case !included:
			displaced = append(displaced, f)
		case isEvent(f.Observation):
			events = append(events, f)
		default:
			kept = append(kept, f)
		}
	}
	receipts, err := receiptsOf(ctx, provider, events)
	if err != nil {
		return nil, nil, err
	}
	for n, f := range events {
		if receipts[n] == nil || f.Intent.MatchesReceipt(f.Transaction, *receipts[n]) {
			kept = append(kept, f)
		} else {
			displaced = append(displaced, f)
		}
	}
	return displaced, kept, nil
}

// blocksOf reads the blocks in which transactions are recorded, each once. A provider without one of them lags.
func blocksOf(ctx context.Context, provider *rpc.Provider, recorded []postgres.Followed) (map[uint64]*evm.Block, error) {
	numbers := make([]uint64, len(recorded))
	for n, f := range recorded {
		numbers[n] = f.Block.Number
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	read, err := rpc.FetchAll(ctx, provider, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
	if err != nil {
		return nil, err
	}
	blocks := make(map[uint64]*evm.Block, len(read))
	for n, block := range read {
		if block == nil {
			return nil, errLags
		}
		blocks[numbers[n]] = block
	}
	return blocks, nil
}

// displacedAttempts are the displaced transactions that may be in another block now, and whose receipt shows it.
func (v *view) displacedAttempts() []postgres.Followed {
	return slices.DeleteFunc(slices.Clone(v.displaced), func(f postgres.Followed) bool {
		return f.Role != transfer.RoleSend && (f.Role != transfer.RoleOpen || !f.Reported)
	})
}

// gone are the displaced transactions that were not seen elsewhere.
func (v *view) gone(seen []postgres.Observation) []postgres.Observation {
	has := make(map[postgres.TransactionKey]bool, len(seen))
	for _, o := range seen {
		has[o.Key()] = true
	}
	var gone []postgres.Observation
	for _, f := range v.displaced {
		if !has[f.Key()] {
			gone = append(gone, f.Observation)
		}
	}
	return gone
}
