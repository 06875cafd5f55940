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
	"intents.internal/pkg/caip"
)

// repairBatch is how many unfilled orders one poll compares with their settlers.
const repairBatch = 100

// repair compares unfilled orders with the settlers' own records, which should agree. If they differ, it finds the missed events and
// records them like any others. Accounts take turns. Orders of a scheme that is no longer supported are not compared.
func (l *loop) repair(ctx context.Context, v *view) error {
	orders, next, err := l.Store.DueOrders(ctx, l.id, l.repairedTurn, repairBatch)
	if err != nil || len(orders) == 0 {
		return ofStore(err)
	}
	l.repairedTurn = next
	readable := slices.DeleteFunc(slices.Clone(orders), func(o chains.Followed) bool { return !o.Intent.HasOrder() })
	seen, err := l.missedEvents(ctx, v, readable)
	if err != nil {
		return err
	}
	if len(seen) > 0 {
		l.metrics.repaired(len(seen))
		l.log.Error("events of settlers were missed and are recorded now", "events", len(seen))
	}
	now := l.Store.Now()
	for _, o := range orders {
		o.DueAt = chains.NextRepair(o.Intent, o.Transaction, now)
		seen = append(seen, o.Observation)
	}
	_, err = l.Store.WriteChain(ctx, l.lease, chains.ChainWrite{Seen: seen})
	return ofStore(err)
}

// missedEvents compares orders with the input settlers of this chain and the output settlers of their destinations, and finds the events
// that these have recorded and that were not seen. An order that cannot be compared, such as one to a chain without providers, does not
// delay the others: its next comparison may succeed. An order whose refund was seen is compared with its output settler alone.
func (l *loop) missedEvents(ctx context.Context, v *view, orders []chains.Followed) ([]chains.Observation, error) {
	open := slices.DeleteFunc(slices.Clone(orders), func(o chains.Followed) bool { return o.Role == transfer.RoleRefund })
	seen, claimed, err := l.compareInputs(ctx, settlerView{l.id, v.provider, v.confirmed, v.final}, open)
	if err != nil {
		return nil, err
	}
	byDestination := map[caip.ChainID][]chains.Followed{}
	for _, o := range orders {
		id := o.Intent.Destination.Account.Chain
		byDestination[id] = append(byDestination[id], o)
	}
	for id, list := range byDestination {
		at, ok := l.viewOf(ctx, v, id)
		if !ok {
			continue
		}
		fills, err := l.compareOutputs(ctx, at, list, claimed)
		if err != nil {
			return nil, err
		}
		seen = append(seen, fills...)
	}
	return seen, nil
}

// settlerView is how a provider shows a chain's settlers: their state is read at the confirmed block, and events up to the final one count.
type settlerView struct {
	chain            caip.ChainID
	provider         *rpc.Provider
	confirmed, final uint64
}

// viewOf returns the view of a chain; ok is false for a chain that is not followed or has no providers.
func (l *loop) viewOf(ctx context.Context, v *view, id caip.ChainID) (at settlerView, ok bool) {
	if id == l.id {
		return settlerView{id, v.provider, v.confirmed, v.final}, true
	}
	chain, ok := l.Client.Chain(id)
	if !ok {
		return at, false
	}
	progress, err := l.Store.ChainProgress(ctx, id)
	providers := chain.Providers()
	if err != nil || !progress.Read || progress.Stopped != "" || len(providers) == 0 {
		return at, false
	}
	return settlerView{id, providers[0], progress.Confirmed, progress.Final}, true
}

// endedBy are the events by which an input settler ends an order.
var endedBy = map[transfer.OrderStatus]transfer.Role{transfer.OrderClaimed: transfer.RoleFinalise, transfer.OrderRefunded: transfer.RoleRefund}

// compareInputs reads the statuses of orders at their input settlers. It returns the missed claims and refunds, and which orders are claimed.
func (l *loop) compareInputs(
	ctx context.Context, at settlerView, orders []chains.Followed,
) (missed []chains.Observation, claimed map[chains.TransactionKey]bool, err error) {
	answers, err := rpc.FetchEach(ctx, at.provider, orders, func(o chains.Followed) *rpc.Call[[]byte] {
		settler := common.HexToAddress(o.Intent.Settlement.InputSettler)
		return rpc.CallContract(rpc.Message{To: settler, Data: transfer.OrderStatusCall(o.Intent.OrderID)}, rpc.Number(at.confirmed))
	})
	if err != nil {
		l.uncompared(orders[0], err)
		return nil, nil, nil
	}
	claimed = map[chains.TransactionKey]bool{}
	for n, answer := range answers {
		o := orders[n]
		status, ok := transfer.ParseOrderStatus(answer.Value)
		if answer.Err == nil && !ok {
			answer.Err = fmt.Errorf("%s does not answer as an input settler", o.Intent.Settlement.InputSettler)
		}
		if answer.Err != nil {
			l.uncompared(o, answer.Err)
			continue
		}
		claimed[o.Key()] = status == transfer.OrderClaimed
		if role, ended := endedBy[status]; ended {
			events, err := l.findMissed(ctx, at, o, common.HexToAddress(o.Intent.Settlement.InputSettler), role)
			if err != nil {
				return nil, nil, err
			}
			missed = append(missed, events...)
		}
	}
	return missed, claimed, nil
}

// compareOutputs reads the fill records of orders at the output settlers of one destination and returns the missed fills. It counts the
// claimed orders that the newest block has no fill of: the input settler believed a proof of a fill that does not exist.
func (l *loop) compareOutputs(
	ctx context.Context, at settlerView, orders []chains.Followed, claimed map[chains.TransactionKey]bool,
) (missed []chains.Observation, err error) {
	var unfilled []chains.Followed
	for _, r := range l.fillRecords(ctx, at.provider, orders, rpc.Number(at.confirmed)) {
		if !r.filled {
			unfilled = append(unfilled, r.Followed)
			continue
		}
		events, err := l.findMissed(ctx, at, r.Followed, common.HexToAddress(r.Intent.Settlement.OutputSettler), transfer.RoleFill)
		if err != nil {
			return nil, err
		}
		missed = append(missed, events...)
	}
	unfilled = slices.DeleteFunc(unfilled, func(o chains.Followed) bool { return !claimed[o.Key()] })
	for _, r := range l.fillRecords(ctx, at.provider, unfilled, rpc.Latest) {
		if !r.filled {
			l.metrics.claimedWithoutFill()
			l.log.Error("an order was claimed and its output settler has no record of a fill", "transfer_id", r.TransferID)
		}
	}
	return missed, nil
}

// fillRecord is whether an output settler has recorded the fill of an order.
type fillRecord struct {
	chains.Followed
	filled bool
}

// fillRecords reads the fill records of orders at a block, without those that cannot be read.
func (l *loop) fillRecords(ctx context.Context, provider *rpc.Provider, orders []chains.Followed, block rpc.BlockID) (records []fillRecord) {
	type question struct {
		chains.Followed
		data []byte
	}
	var questions []question
	for _, o := range orders {
		data, err := o.Intent.FillRecordCall()
		if err != nil {
			l.uncompared(o, err)
			continue
		}
		questions = append(questions, question{o, data})
	}
	answers, err := rpc.FetchEach(ctx, provider, questions, func(q question) *rpc.Call[[]byte] {
		return rpc.CallContract(rpc.Message{To: common.HexToAddress(q.Intent.Settlement.OutputSettler), Data: q.data}, block)
	})
	if err != nil {
		l.uncompared(questions[0].Followed, err)
		return nil
	}
	for n, answer := range answers {
		o := questions[n].Followed
		if answer.Err == nil && len(answer.Value) != common.HashLength {
			answer.Err = fmt.Errorf("%s does not answer as an output settler", o.Intent.Settlement.OutputSettler)
		}
		if answer.Err != nil {
			l.uncompared(o, answer.Err)
			continue
		}
		records = append(records, fillRecord{o, common.Hash(answer.Value) != common.Hash{}})
	}
	return records
}

// findMissed finds the event that a settler has recorded of an order, unless one with that role is known or it is not final yet.
func (l *loop) findMissed(
	ctx context.Context, at settlerView, o chains.Followed, settler common.Address, role transfer.Role,
) ([]chains.Observation, error) {
	known, err := l.Store.Transactions(ctx, o.AccountID, o.TransferID)
	if err != nil {
		return nil, ofStore(err)
	}
	if slices.ContainsFunc(known, func(t transfer.Transaction) bool { return t.Role == role }) {
		return nil, nil
	}
	t, ok, err := findEvent(ctx, at, o.Intent, settler, role)
	if err == nil && !ok {
		err = errMissingLogs
	}
	if err != nil {
		l.uncompared(o, err)
		return nil, nil
	}
	if t.Block.Number > at.final {
		return nil, nil
	}
	return []chains.Observation{{AccountID: o.AccountID, TransferID: o.TransferID, Transaction: t}}, nil
}

// uncompared logs one of the orders that could not be compared.
func (l *loop) uncompared(o chains.Followed, err error) {
	if time.Since(l.uncomparedAt) < warnEvery {
		return
	}
	l.uncomparedAt = time.Now()
	l.log.Warn("unfilled orders cannot be compared with their settlers; they are compared again later", "transfer_id", o.TransferID, "error", err)
}

// findEvent looks for a settler's event about one order, from the confirmed block back to the time of the intent.
func findEvent(
	ctx context.Context, at settlerView, intent *transfer.Intent, settler common.Address, role transfer.Role,
) (t transfer.Transaction, ok bool, err error) {
	topics := [][]common.Hash{transfer.SettlerTopics, {intent.OrderID}}
	for to := at.confirmed; ; {
		from := to + 1 - min(to+1, at.provider.LogRange())
		logs := rpc.Logs(rpc.LogFilter{From: from, To: to, Addresses: []common.Address{settler}, Topics: topics})
		first := rpc.BlockByNumber(rpc.Number(from))
		_ = at.provider.Do(ctx, logs, first) // Result returns the same error
		found, err := logs.Result()
		if errors.Is(err, rpc.ErrRange) && to > from {
			continue
		}
		if err != nil {
			return t, false, err
		}
		for _, log := range found {
			if t, ok = intent.MatchLog(at.chain, log); ok && t.Role == role {
				return t, true, nil
			}
		}
		if block, err := first.Result(); err != nil || from == 0 || isBefore(block, intent.CreatedAt) {
			return t, false, err
		}
		to = from - 1
	}
}

// isBefore reports whether a block is older than an intent, allowing for clock differences.
func isBefore(block *evm.Block, created time.Time) bool {
	return block == nil || block.Time.Before(created.Add(-time.Hour))
}
