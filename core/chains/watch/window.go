package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
)

// errMissingLogs is returned for a provider that lacks an event whose block is still on the chain.
var errMissingLogs = errors.New("the provider lacks events that were seen before")

// readWindow reads the settlers' events of the blocks above the cursor and returns the transactions that are new or have changed.
func (l *loop) readWindow(ctx context.Context, v *view) ([]chains.Observation, error) {
	logs, err := l.readLogs(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := l.match(ctx, v, logs)
	if err != nil {
		return nil, err
	}
	known, err := l.Store.ObservationsBetween(ctx, l.id, v.cursor(), v.to)
	if err != nil {
		return nil, ofStore(err)
	}
	byKey := make(map[chains.TransactionKey]chains.Observation, len(known))
	for _, o := range known {
		byKey[o.Key()] = o
	}
	if err := l.checkDeposits(ctx, v, found, byKey); err != nil {
		return nil, err
	}
	var changed []chains.Observation
	for _, f := range found {
		o := f.Observation
		old, ok := byKey[o.Key()]
		delete(byKey, o.Key())
		if ok && o.Block != nil && old.State == o.State && *old.Block == *o.Block && old.LogIndex == o.LogIndex {
			continue
		}
		if o.Sender, o.Nonce = old.Sender, old.Nonce; ok && o.Block != nil {
			o.DueAt = old.DueAt
		}
		changed = append(changed, o)
	}
	for _, o := range byKey {
		if isEvent(o) && o.Block.Number <= v.checkAbove() {
			return nil, l.missingEvent(v.provider, o)
		}
	}
	v.displaced, err = l.findDisplaced(ctx, v, byKey)
	return changed, err
}

// missingEvent is the error for a provider that has left out an event.
func (l *loop) missingEvent(p *rpc.Provider, o chains.Observation) error {
	l.disagree(p, "an event that was seen before is missing", o.Block.Number)
	return fmt.Errorf("%w: %s in block %d", errMissingLogs, o.Hash, o.Block.Number)
}

func isEvent(o chains.Observation) bool {
	return o.Role != transfer.RoleSend && o.State == transfer.Mined
}

// checkedAtOnce is how many recorded transactions one poll checks after a reorganization. The next poll checks the others.
const checkedAtOnce = 1000

// readLimit is the last block that this poll may read, so that it checks a bounded number of recorded transactions.
func (l *loop) readLimit(ctx context.Context, v *view) (uint64, error) {
	above := v.checkAbove()
	block, ok, err := l.Store.RecordedBlock(ctx, l.id, above, checkedAtOnce)
	if err != nil || !ok {
		return v.head.Number, ofStore(err)
	}
	return min(max(block, above+1), v.head.Number), nil
}

// readLogs reads the settlers' events from the cursor to the head, in as many ranges as the provider's limit requires. Of a
// backlog it reads one range, or the range of the previous poll for the second time, after which the cursor can move.
func (l *loop) readLogs(ctx context.Context, v *view) (all []evm.Log, err error) {
	settlers, err := l.Store.ChainSettlers(ctx, l.id)
	if err != nil {
		return nil, ofStore(err)
	}
	limit, err := l.readLimit(ctx, v)
	if err != nil {
		return nil, err
	}
	v.to, v.toTime = v.cursor(), v.head.Time
	for v.to < limit {
		found, err := l.readRange(ctx, v, settlers, v.to+1, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		if v.to <= v.deep && (v.fork != nil || v.to >= v.before.ReadTo) {
			break
		}
	}
	return all, nil
}

// readRange reads the events of one range. The same batch gets its last block, because a provider that lacks the block returns no
// events, which would look like an empty chain. Without settlers the range is not bounded.
func (l *loop) readRange(ctx context.Context, v *view, settlers []common.Address, from, limit uint64) (found []evm.Log, err error) {
	for {
		v.to = limit
		var requests []rpc.Request
		logs := rpc.Logs(rpc.LogFilter{})
		if len(settlers) > 0 {
			v.to = min(limit, from+v.provider.LogRange()-1)
			logs = rpc.Logs(rpc.LogFilter{From: from, To: v.to, Addresses: settlers, Topics: [][]common.Hash{transfer.SettlerTopics}})
			requests = append(requests, logs)
		} else if v.to == v.head.Number {
			v.toTime = v.head.Time
			return nil, nil
		}
		last := rpc.BlockByNumber(rpc.Number(v.to))
		_ = v.provider.Do(ctx, append(requests, last)...) // Result returns the same error
		if len(settlers) > 0 {
			found, err = logs.Result()
		}
		if errors.Is(err, rpc.ErrRange) && v.to > from {
			continue // the provider's range has been reduced
		}
		if err != nil {
			return nil, err
		}
		block, err := last.Result()
		switch {
		case err != nil:
			return nil, err
		case block == nil, v.to == v.head.Number && block.Hash != v.head.Hash:
			return nil, errLags
		}
		if v.toTime = block.Time; v.to < v.head.Number {
			v.anchors = append(v.anchors, transfer.Block{Number: block.Number, Hash: block.Hash})
		}
		return found, nil
	}
}

// match finds the intents of the events. Most events may belong to orders of others.
func (l *loop) match(ctx context.Context, v *view, logs []evm.Log) ([]chains.Followed, error) {
	byOrder := map[[32]byte][]evm.Log{}
	var orders [][32]byte
	for _, log := range logs {
		e, ok := transfer.ParseSettlerEvent(log)
		if !ok {
			l.metrics.unmatched(v, log)
			continue
		}
		if _, known := byOrder[e.OrderID]; !known {
			orders = append(orders, e.OrderID)
		}
		byOrder[e.OrderID] = append(byOrder[e.OrderID], log)
	}
	intents, err := l.Store.TransfersByOrders(ctx, orders)
	if err != nil {
		return nil, ofStore(err)
	}
	var found []chains.Followed
	for _, intent := range intents {
		for _, log := range byOrder[intent.OrderID] {
			t, ok := intent.MatchLog(l.id, log)
			if !ok { // another contract or chain than the intent's
				l.metrics.unmatched(v, log)
				continue
			}
			o := chains.Observation{AccountID: intent.AccountID, TransferID: intent.ID, Transaction: t}
			found = append(found, chains.Followed{Observation: o, Intent: intent})
		}
	}
	return found, nil
}

// findDisplaced checks what is recorded of blocks that are read for the first time since a reorganization. It returns the
// transactions that are not in their blocks any more, once a second provider shows the same. absent are the recorded transactions
// of the window that no event of this poll shows.
func (l *loop) findDisplaced(ctx context.Context, v *view, absent map[chains.TransactionKey]chains.Observation) ([]chains.Followed, error) {
	if v.to <= v.checkAbove() {
		return nil, nil
	}
	observed, err := l.Store.FollowedBetween(ctx, l.id, v.checkAbove(), v.to)
	if err != nil {
		return nil, ofStore(err)
	}
	observed = slices.DeleteFunc(observed, func(f chains.Followed) bool {
		_, ok := absent[f.Key()]
		return !ok
	})
	displaced, kept, err := l.displacedAt(ctx, v, v.provider, observed)
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
func (l *loop) crossCheckDisplaced(ctx context.Context, v *view, displaced []chains.Followed) error {
	var contradicted error
	for _, other := range l.chain.Other(v.provider) {
		_, kept, failure := l.displacedAt(ctx, v, other, displaced)
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
func (l *loop) displacedAt(
	ctx context.Context, v *view, provider *rpc.Provider, observed []chains.Followed,
) (displaced, kept []chains.Followed, err error) {
	blocks, err := blocksOf(ctx, provider, observed)
	if err != nil {
		return nil, nil, err
	}
	var events []chains.Followed
	for _, f := range observed {
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
	receipts, err := l.receipts(ctx, v, provider, events)
	if err != nil {
		return nil, nil, err
	}
	for n, f := range events {
		if receipt := receipts[n].Value; receipt == nil || f.Intent.MatchesReceipt(f.Transaction, *receipt) {
			kept = append(kept, f)
		} else {
			displaced = append(displaced, f)
		}
	}
	return displaced, kept, nil
}

// blocksOf reads the blocks in which transactions are recorded, each once. A provider without one of them lags.
func blocksOf(ctx context.Context, provider *rpc.Provider, observed []chains.Followed) (map[uint64]*evm.Block, error) {
	numbers := make([]uint64, len(observed))
	for n, f := range observed {
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
func (v *view) displacedAttempts() []chains.Followed {
	return slices.DeleteFunc(slices.Clone(v.displaced), func(f chains.Followed) bool {
		return f.Role != transfer.RoleSend && (f.Role != transfer.RoleOpen || !f.Reported)
	})
}

// gone are the displaced transactions that were not seen elsewhere.
func (v *view) gone(seen []chains.Observation) []chains.Observation {
	has := make(map[chains.TransactionKey]bool, len(seen))
	for _, o := range seen {
		has[o.Key()] = true
	}
	var gone []chains.Observation
	for _, f := range v.displaced {
		if !has[f.Key()] {
			gone = append(gone, f.Observation)
		}
	}
	return gone
}
