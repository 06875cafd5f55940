package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// errMissingLogs is returned for a provider that lacks an event whose block is still on the chain.
var errMissingLogs = errors.New("the provider lacks events that were seen before")

// readWindow reads the settlers' events of the blocks above the cursor and returns the transactions that are new or have changed. Events that
// only the second host shows are among them.
func (l *loop) readWindow(ctx context.Context, v *view) ([]intents.Observation, error) {
	logs, err := l.readLogs(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := l.match(ctx, v, slices.Concat(logs, v.second.logs))
	if err != nil {
		return nil, err
	}
	known, err := l.Store.ObservationsBetween(ctx, l.id, v.cursor(), v.to)
	if err != nil {
		return nil, ofStore(err)
	}
	byKey := make(map[intents.TransactionKey]intents.Observation, len(known))
	for _, o := range known {
		byKey[o.Key()] = o
	}
	if err := l.checkDeposits(ctx, v, found, byKey); err != nil {
		return nil, err
	}
	var changed []intents.Observation
	for _, f := range found {
		o := f.Observation
		old, ok := byKey[o.Key()]
		if ok && o.Block != nil && old.State == o.State && *old.Block == *o.Block {
			delete(byKey, o.Key()) // with the index of the first reading: nodes number logs differently
			continue
		}
		if o.Sender, o.Nonce, o.SeenAt = old.Sender, old.Nonce, old.SeenAt; ok && o.Block != nil {
			o.DueAt, o.Reported = old.DueAt, old.Reported
		}
		if !old.Confirmed || o.Block != nil && *old.Block == *o.Block {
			delete(byKey, o.Key())
		}
		changed = append(changed, o)
	}
	v.displaced, err = l.findDisplaced(ctx, v, byKey)
	return changed, err
}

func isEvent(o intents.Observation) bool {
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
	v.to, v.toTime = v.readFrom(), v.head.Time
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

// readRange reads the events of one range. Without settlers the range is not bounded.
func (l *loop) readRange(ctx context.Context, v *view, settlers []common.Address, from, limit uint64) ([]evm.Log, error) {
	if len(settlers) == 0 && limit == v.head.Number {
		v.to, v.toTime = limit, v.head.Time
		return nil, nil
	}
	found, last, flooded, err := l.readEvents(ctx, v.provider, settlers, from, limit)
	if err != nil {
		return nil, err
	}
	if flooded {
		v.flooded = append(v.flooded, last.Hash)
	}
	if last.Number == v.head.Number && last.Hash != v.head.Hash {
		return nil, errLags
	}
	if v.to, v.toTime = last.Number, last.Time; v.to < v.head.Number {
		v.anchors = append(v.anchors, transfer.Block{Number: last.Number, Hash: last.Hash})
	}
	return found, nil
}

// readEvents reads the settlers' events from a block on, up to another or to the provider's limit, and the last block of the range. The same
// batch gets that block, because a provider that lacks it returns no events, which would look like an empty chain. A single block with too
// many events is flooded, see readFlooded.
func (l *loop) readEvents(
	ctx context.Context, provider *rpc.Provider, settlers []common.Address, from, limit uint64,
) (logs []evm.Log, last *evm.Block, flooded bool, err error) {
	for {
		filter := rpc.LogFilter{From: from, To: limit, Addresses: settlers, Topics: [][]common.Hash{transfer.SettlerTopics}, MaxData: transfer.MaxEventData}
		if len(settlers) > 0 {
			filter.To = min(limit, from+provider.LogRange()-1)
		}
		logs, last, err = rpc.ReadRange(ctx, provider, filter)
		switch {
		case errors.Is(err, rpc.ErrRange) && filter.To > from: // the provider's range has been reduced
		case isFlooded(err):
			logs, last, err = l.readFlooded(ctx, provider, filter)
			return logs, last, true, err
		case errors.Is(err, rpc.ErrMissing):
			return nil, nil, false, errLags
		default:
			return logs, last, false, err
		}
	}
}

// match finds the intents of the events. Most events may belong to orders of others.
func (l *loop) match(ctx context.Context, v *view, logs []evm.Log) ([]intents.Followed, error) {
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
	own, err := l.Store.TransfersByOrders(ctx, orders)
	if err != nil {
		return nil, ofStore(err)
	}
	var found []intents.Followed
	matched := map[intents.TransactionKey]bool{}
	for _, intent := range own {
		for _, log := range byOrder[intent.OrderID] {
			t, ok := intent.MatchLog(l.id, log)
			if !ok { // another contract or chain than the intent's
				l.metrics.unmatched(v, log)
				continue
			}
			o := intents.Observation{AccountID: intent.AccountID, TransferID: intent.ID, Transaction: t}
			if matched[o.Key()] {
				continue // both hosts show it, or a provider shows it twice with two indexes
			}
			matched[o.Key()] = true
			found = append(found, intents.Followed{Observation: o, Intent: intent})
		}
	}
	return found, nil
}

// findDisplaced checks what is recorded of the window's blocks and is not among its events: events, and after a reorganization attempts
// too. It returns the transactions that are not in their blocks. What is provisional blocks no poll.
func (l *loop) findDisplaced(ctx context.Context, v *view, absent map[intents.TransactionKey]intents.Observation) (displaced []intents.Followed, err error) {
	maps.DeleteFunc(absent, func(_ intents.TransactionKey, o intents.Observation) bool {
		return o.Block.Number <= v.readFrom() || !isEvent(o) && o.Block.Number <= v.checkAbove() || isEvent(o) && slices.Contains(v.flooded, o.Block.Hash)
	})
	if len(absent) == 0 {
		return nil, nil
	}
	observed, err := l.Store.FollowedBetween(ctx, l.id, v.cursor(), v.to)
	if err != nil {
		return nil, ofStore(err)
	}
	observed = slices.DeleteFunc(observed, func(f intents.Followed) bool {
		_, ok := absent[f.Key()]
		return !ok
	})
	verdicts, err := testify(ctx, l.hosts, v.provider, observed, func(ctx context.Context, p *rpc.Provider, asked []intents.Followed) ([]shown[bool], error) {
		return l.inBlocks(ctx, v, p, asked)
	})
	if err != nil {
		return nil, err
	}
	for n, f := range observed {
		switch of := verdicts[n]; {
		case isEvent(f.Observation) && (of.own == shown[bool]{true, true} || f.Confirmed && !of.own.known):
			l.disagree(v.provider, "an event that was seen before is missing", f.Block.Number)
			return nil, fmt.Errorf("%w: %s in block %d", errMissingLogs, f.Hash, f.Block.Number)
		case !of.own.known || of.own.fact:
		case f.Confirmed && of.believed(false), !f.Confirmed && of.falls(true):
			displaced = append(displaced, f)
		case f.Confirmed && of.count(true) > 0:
			l.disagree(v.provider, "a transaction is still in its block", f.Block.Number)
			return nil, fmt.Errorf("%w: they have %s in block %d", errContradicted, f.Hash, f.Block.Number)
		case f.Confirmed:
			return nil, errUnanswered
		default:
			l.disagree(v.provider, "a transaction is not in its block", f.Block.Number)
		}
	}
	return displaced, nil
}

// inBlocks is whether a provider shows transactions in the blocks in which they are recorded. One that shows the block with the
// transaction and has no receipt cannot tell.
func (l *loop) inBlocks(ctx context.Context, v *view, provider *rpc.Provider, observed []intents.Followed) ([]shown[bool], error) {
	blocks, err := blocksOf(ctx, provider, observed)
	if err != nil {
		return nil, err
	}
	answers := make([]shown[bool], len(observed))
	var included []int
	var events []intents.Followed
	for n, f := range observed {
		block := blocks[f.Block.Number]
		answers[n].known = block != nil
		if block == nil || block.Hash != f.Block.Hash || !slices.Contains(block.Transactions, f.Hash) {
			continue
		}
		if answers[n].fact = true; isEvent(f.Observation) {
			included, events = append(included, n), append(events, f)
		}
	}
	receipts, err := l.receipts(ctx, v, provider, events)
	if err != nil {
		return nil, err
	}
	for i, n := range included {
		receipt := receipts[i].Value
		answers[n] = shown[bool]{receipt != nil && events[i].Intent.MatchesReceipt(events[i].Transaction, *receipt), receipt != nil}
	}
	return answers, nil
}

// blocksOf reads the blocks in which transactions are recorded, each once; without those that the provider cannot show.
func blocksOf(ctx context.Context, provider *rpc.Provider, observed []intents.Followed) (map[uint64]*evm.Block, error) {
	var numbers []uint64
	for _, f := range observed {
		if f.Block != nil {
			numbers = append(numbers, f.Block.Number)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	read, err := rpc.FetchEach(ctx, provider, numbers, func(n uint64) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(n)) })
	if err != nil {
		return nil, err
	}
	blocks := make(map[uint64]*evm.Block, len(read))
	for n, block := range read {
		if block.Err == nil {
			blocks[numbers[n]] = block.Value
		}
	}
	return blocks, nil
}

// displacedAttempts are the displaced transactions that may be in another block now, and whose receipt shows it.
func (v *view) displacedAttempts() []intents.Followed {
	return slices.DeleteFunc(slices.Clone(v.displaced), func(f intents.Followed) bool {
		return f.Role != transfer.RoleSend && (f.Role != transfer.RoleOpen || !f.Reported)
	})
}

// gone are the displaced transactions that were not seen elsewhere, and the confirmed ones: what is provisional takes no place of theirs.
func (v *view) gone(seen []intents.Observation) []intents.Observation {
	has := make(map[intents.TransactionKey]bool, len(seen))
	for _, o := range seen {
		has[o.Key()] = true
	}
	var gone []intents.Observation
	for _, f := range v.displaced {
		if f.Confirmed || !has[f.Key()] {
			gone = append(gone, f.Observation)
		}
	}
	return gone
}
