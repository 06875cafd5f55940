package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

const (
	// repairPeriod is the shortest time between two rounds of comparisons.
	repairPeriod = 10 * time.Second
	// minRepaired and maxRepaired bound the orders of a round. Between them it is a quarter of the calls that the provider grants, so that
	// comparisons are as many as there are orders and leave the rest to the polls.
	minRepaired, maxRepaired, repairPart = 20, 2000, 4
	// maxRepairLogs bounds the ranges of logs that a round reads. The rest waits for the next one.
	maxRepairLogs = 20
)

// repairer compares unfilled orders of one chain with the settlers' own records, beside the polls and with calls of its own: it is optional,
// and waits for the end of a backlog. Its methods are called by one goroutine.
type repairer struct {
	*loop

	hosts *hosts

	// turn is after which one the next round begins with the accounts that have due orders.
	turn intents.Turn
	// uncomparedLogs samples the lines about orders that cannot be compared.
	uncomparedLogs telemetry.Sampler
	// searches are the last blocks of the ranges in which missed events are looked for next.
	searches map[eventKey]uint64
	// logs is how many ranges of logs the round may still read.
	logs int
	// authorizations is where the round of signed transfers is.
	authorizations authorizationRound
}

func newRepairer(l *loop) *repairer {
	return &repairer{
		loop: l, hosts: &hosts{chain: l.chain}, searches: map[eventKey]uint64{}, uncomparedLogs: telemetry.Sampler{Every: warnEvery},
	}
}

// eventKey names an event of an order.
type eventKey struct {
	order intents.TransactionKey
	role  transfer.Role
}

// run compares orders in rounds until ctx ends or the lease is lost.
func (r *repairer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(r.period(), repairPeriod)):
		}
		err := r.repair(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, watched.ErrLeaseLost):
			return
		case err != nil:
			r.log.Warn("unfilled orders are not compared with their settlers; trying again", "error", err)
		}
	}
}

// repair compares the unfilled orders that are due with the settlers' own records, which should agree. If they differ, it finds the missed
// events and records them like any others. Accounts take turns. Orders of a scheme that is no longer supported are not compared.
func (r *repairer) repair(ctx context.Context) error {
	at, ok := r.viewOf(ctx, r.id)
	if !ok || at.provider.Busy() {
		return nil
	}
	calls := at.provider.CallsWithin(max(r.period(), repairPeriod)) / repairPart
	limit := min(max(calls, minRepaired), maxRepaired)
	if err := r.compareUnopened(ctx, at, int64(limit)); err != nil {
		return err
	}
	if err := r.compareAuthorizations(ctx, at, limit); err != nil {
		return err
	}
	orders, next, err := r.Store.DueOrders(ctx, r.id, r.turn, limit)
	if err != nil || len(orders) == 0 {
		return err
	}
	r.turn, r.logs = next, maxRepairLogs
	readable := slices.DeleteFunc(slices.Clone(orders), func(o intents.Followed) bool { return !o.Intent.HasOrder() })
	seen, err := r.missedEvents(ctx, at, readable)
	if err != nil {
		return err
	}
	if len(seen) > 0 {
		r.metrics.repaired(len(seen))
		r.log.Error("events of settlers were missed and are recorded now", "events", len(seen))
	}
	now := r.Store.Now()
	for _, o := range orders {
		if o.DueAt = intents.NextRepair(o.Intent, o.Transaction, now); r.searching(o) {
			o.DueAt = now
		}
		seen = append(seen, o.Observation)
	}
	_, err = r.writeChain(ctx, intents.ChainWrite{Seen: seen})
	return err
}

// missedEvents compares orders with the input settlers of this chain and the output settlers of their destinations, and finds the events
// that these have recorded and that were not seen. An order that cannot be compared, such as one to a chain without providers, does not
// delay the others: its next comparison may succeed. An order whose refund was seen is compared with its output settler alone.
func (r *repairer) missedEvents(ctx context.Context, here settlerView, orders []intents.Followed) ([]intents.Observation, error) {
	open := slices.DeleteFunc(slices.Clone(orders), func(o intents.Followed) bool { return o.Role == transfer.RoleRefund })
	seen, claimed, err := r.compareInputs(ctx, here, open)
	if err != nil {
		return nil, err
	}
	byDestination := map[caip.ChainID][]intents.Followed{}
	for _, o := range orders {
		id := o.Intent.Destination.Account.Chain
		byDestination[id] = append(byDestination[id], o)
	}
	for id, list := range byDestination {
		at, ok := r.viewOf(ctx, id)
		if !ok {
			continue
		}
		fills, err := r.compareOutputs(ctx, at, list, claimed)
		if err != nil {
			return nil, err
		}
		seen = append(seen, fills...)
	}
	return seen, nil
}

// settlerView is how a provider shows a chain's settlers: their state is read at the newest block, since nodes keep no states of blocks far
// below it, and events up to the final block count. Events are looked for from the confirmed block on.
type settlerView struct {
	watched.Progress

	chain    caip.ChainID
	provider *rpc.Provider
}

// viewOf returns the view of a chain; ok is false for a chain that is not followed, is in a backlog, or has no providers.
func (r *repairer) viewOf(ctx context.Context, id caip.ChainID) (at settlerView, ok bool) {
	chain, ok := r.Client.Chain(id)
	if !ok {
		return at, false
	}
	progress, err := r.Watched.Progress(ctx, id)
	providers := chain.Providers()
	if err != nil || !progress.Read || progress.Stopped != "" || progress.ReadTo < progress.Head || len(providers) == 0 {
		return at, false
	}
	return settlerView{progress, id, providers[0]}, true
}

// endedBy are the events by which an input settler ends an order.
var endedBy = map[transfer.OrderStatus]transfer.Role{transfer.OrderClaimed: transfer.RoleFinalise, transfer.OrderRefunded: transfer.RoleRefund}

// compareInputs reads the statuses of orders at their input settlers. It returns the missed claims and refunds, and which orders are claimed.
func (r *repairer) compareInputs(
	ctx context.Context, at settlerView, orders []intents.Followed,
) (missed []intents.Observation, claimed map[intents.TransactionKey]bool, err error) {
	answers, err := rpc.FetchEach(ctx, at.provider, orders, orderStatusCall)
	if err != nil {
		r.uncompared(orders[0], err)
		return nil, nil, nil
	}
	claimed = map[intents.TransactionKey]bool{}
	for n, answer := range answers {
		o := orders[n]
		status, ok := transfer.ParseOrderStatus(answer.Value)
		if answer.Err == nil && !ok {
			answer.Err = fmt.Errorf("%s does not answer as an input settler", o.Intent.Settlement.InputSettler)
		}
		if answer.Err != nil {
			r.uncompared(o, answer.Err)
			continue
		}
		claimed[o.Key()] = status == transfer.OrderClaimed
		if role, ended := endedBy[status]; ended {
			events, err := r.findMissed(ctx, at, o, common.HexToAddress(o.Intent.Settlement.InputSettler), role)
			if err != nil {
				return nil, nil, err
			}
			missed = append(missed, events...)
		}
	}
	return missed, claimed, nil
}

// compareOutputs reads the fill records of orders at the output settlers of one destination and returns the missed fills. It counts the
// claimed orders that have none: the input settler believed a proof of a fill that does not exist.
func (r *repairer) compareOutputs(
	ctx context.Context, at settlerView, orders []intents.Followed, claimed map[intents.TransactionKey]bool,
) (missed []intents.Observation, err error) {
	for _, record := range r.fillRecords(ctx, at.provider, orders) {
		if !record.filled {
			if claimed[record.Key()] {
				r.metrics.claimedWithoutFill()
				r.log.Error("an order was claimed and its output settler has no record of a fill", "transfer_id", record.TransferID)
			}
			continue
		}
		events, err := r.findMissed(ctx, at, record.Followed, common.HexToAddress(record.Intent.Settlement.OutputSettler), transfer.RoleFill)
		if err != nil {
			return nil, err
		}
		missed = append(missed, events...)
	}
	return missed, nil
}

// fillRecord is whether an output settler has recorded the fill of an order.
type fillRecord struct {
	intents.Followed
	filled bool
}

// fillRecords reads the fill records of orders, without those that cannot be read.
func (r *repairer) fillRecords(ctx context.Context, provider *rpc.Provider, orders []intents.Followed) (records []fillRecord) {
	type question struct {
		intents.Followed
		data []byte
	}
	var questions []question
	for _, o := range orders {
		data, err := o.Intent.FillRecordCall()
		if err != nil {
			r.uncompared(o, err)
			continue
		}
		questions = append(questions, question{o, data})
	}
	answers, err := rpc.FetchEach(ctx, provider, questions, func(q question) *rpc.Call[[]byte] {
		return rpc.CallContract(rpc.Message{To: common.HexToAddress(q.Intent.Settlement.OutputSettler), Data: q.data}, rpc.Latest)
	})
	if err != nil {
		r.uncompared(questions[0].Followed, err)
		return nil
	}
	for n, answer := range answers {
		o := questions[n].Followed
		if answer.Err == nil && len(answer.Value) != common.HashLength {
			answer.Err = fmt.Errorf("%s does not answer as an output settler", o.Intent.Settlement.OutputSettler)
		}
		if answer.Err != nil {
			r.uncompared(o, answer.Err)
			continue
		}
		records = append(records, fillRecord{o, common.Hash(answer.Value) != common.Hash{}})
	}
	return records
}

// findMissed finds the event that a settler has recorded of an order, unless one with that role is known or it is not final yet.
func (r *repairer) findMissed(
	ctx context.Context, at settlerView, o intents.Followed, settler common.Address, role transfer.Role,
) ([]intents.Observation, error) {
	known, err := r.Store.Transactions(ctx, o.AccountID, o.TransferID)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(known, func(t transfer.Transaction) bool { return t.Role == role }) {
		return nil, nil
	}
	t, ok, err := r.findEvent(ctx, at, o, settler, role)
	if err != nil {
		r.uncompared(o, err)
		ok = false
	}
	if !ok || t.Block.Number > at.Final {
		return nil, nil
	}
	return []intents.Observation{{AccountID: o.AccountID, TransferID: o.TransferID, Transaction: t}}, nil
}

// uncompared logs one of the orders that could not be compared.
func (r *repairer) uncompared(o intents.Followed, err error) {
	if _, due := r.uncomparedLogs.Due(); due {
		r.log.Warn("unfilled orders cannot be compared with their settlers; they are compared again later", "transfer_id", o.TransferID, "error", err)
	}
}

// searching reports whether an event of an order is still looked for.
func (r *repairer) searching(o intents.Followed) bool {
	for _, role := range []transfer.Role{transfer.RoleFill, transfer.RoleFinalise, transfer.RoleRefund} {
		if _, open := r.searches[eventKey{o.Key(), role}]; open {
			return true
		}
	}
	return false
}

// findEvent looks for a settler's event about one order, from the confirmed block back to the time of the intent. Where the round has read
// its ranges, ok is false and the next round goes on.
func (r *repairer) findEvent(
	ctx context.Context, at settlerView, o intents.Followed, settler common.Address, role transfer.Role,
) (t transfer.Transaction, ok bool, err error) {
	to := at.Confirmed
	if role == transfer.RoleOpen {
		to = at.ReadTo
	}
	topics := [][]common.Hash{transfer.SettlerTopics, {o.Intent.OrderID}}
	ok, err = r.findLog(ctx, at, o, role, to, settler, topics, func(log evm.Log) (ok bool) {
		t, ok = o.Intent.MatchLog(at.chain, log)
		return ok && t.Role == role
	})
	return t, ok, err
}

// findLog looks for a contract's log about an intent that matches, from a block back to the time of the intent. Where the round has read its
// ranges, found is false and the next round goes on.
func (r *repairer) findLog(
	ctx context.Context, at settlerView, o intents.Followed, role transfer.Role, to uint64, contract common.Address, topics [][]common.Hash,
	matches func(evm.Log) bool,
) (found bool, err error) {
	key := eventKey{o.Key(), role}
	if earlier, open := r.searches[key]; open && role != transfer.RoleOpen {
		to = earlier
	}
	delete(r.searches, key)
	for ; ; r.logs-- {
		if r.logs <= 0 {
			if len(r.searches) < maxKeptSearches {
				r.searches[key] = to
			}
			return false, nil
		}
		from := to + 1 - min(to+1, at.provider.LogRange())
		logs := rpc.Logs(rpc.LogFilter{From: from, To: to, Addresses: []common.Address{contract}, Topics: topics})
		first := rpc.BlockByNumber(rpc.Number(from))
		_ = at.provider.Do(ctx, logs, first) // Result returns the same error
		read, err := logs.Result()
		if errors.Is(err, rpc.ErrRange) && to > from {
			continue
		}
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(read, matches) {
			return true, nil
		}
		if block, err := first.Result(); err != nil || from == 0 || isBefore(block, o.Intent.CreatedAt) {
			return false, errors.Join(err, errMissingLogs)
		}
		to = from - 1
	}
}

// isBefore reports whether a block is older than an intent, allowing for clock differences.
func isBefore(block *evm.Block, created time.Time) bool {
	return block == nil || block.Time.Before(created.Add(-time.Hour))
}
