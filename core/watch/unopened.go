package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/intents"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// blockDelay is how much later than by its own time a block may be seen: a chain without new blocks has nothing that an order waits for.
const blockDelay = 30 * time.Second

// compareUnopened compares orders of which no opening is known with their input settlers once their deadlines have passed by the chain's
// clock, before they expire: a provider may have left their openings out, also those by somebody else than the client whose attempt was
// dropped or has failed. An opening that two hosts' settlers have recorded is looked for at each host, and followed like a reported attempt.
// What one host alone says ends the round, for as long as the expiry waits for it.
func (r *repairer) compareUnopened(ctx context.Context, at settlerView, limit int64) error {
	until := at.ReadTime
	if late := r.Store.Now().Add(-blockDelay); late.After(until) {
		until = late
	}
	if !until.After(at.UnopenedUntil) {
		return nil
	}
	overdue, err := r.Store.OverdueOrders(ctx, r.id, at.UnopenedUntil, until, limit)
	if err != nil {
		return err
	}
	verdicts, err := testify(ctx, r.hosts, at.provider, overdue, orderStatuses)
	if err != nil {
		return err
	}
	if n := len(overdue); int64(n) == limit { // others may have the last one's deadline
		until = overdue[n-1].Intent.Deadline
		if first := overdue[0].Intent.Deadline; first.Before(until) {
			until = until.Add(-time.Microsecond)
		}
	}
	var seen []intents.Observation
	for n, o := range overdue {
		status, certain := verdicts[n].decided()
		waits := r.Store.Now().Before(o.Intent.Deadline.Add(intents.UnopenedWait))
		if !certain && waits && (len(verdicts[n].facts) > 0 || verdicts[n].heard < verdicts[n].quorum) {
			until = o.Intent.Deadline.Add(-time.Microsecond)
			break
		}
		if certain && status != transfer.OrderNone {
			opening, err := r.findOpening(ctx, at, o)
			if err != nil {
				return err
			}
			seen = append(seen, opening...)
		}
	}
	if len(seen) > 0 {
		r.metrics.repaired(len(seen))
		r.log.Error("openings of orders were missed and are recorded now", "events", len(seen))
		if _, err := r.writeChain(ctx, intents.ChainWrite{Seen: seen}); err != nil {
			return err
		}
	}
	return r.Watched.SaveUnopened(ctx, r.lease, until)
}

// orderStatuses are what a provider's settlers have recorded of orders.
func orderStatuses(ctx context.Context, provider *rpc.Provider, orders []intents.Followed) ([]shown[transfer.OrderStatus], error) {
	answers, err := rpc.FetchEach(ctx, provider, orders, orderStatusCall)
	if err != nil {
		return nil, err
	}
	statuses := make([]shown[transfer.OrderStatus], len(orders))
	for n, answer := range answers {
		statuses[n].fact, statuses[n].known = transfer.ParseOrderStatus(answer.Value)
		statuses[n].known = statuses[n].known && answer.Err == nil
	}
	return statuses, nil
}

func orderStatusCall(o intents.Followed) *rpc.Call[[]byte] {
	settler := common.HexToAddress(o.Intent.Settlement.InputSettler)
	return rpc.CallContract(rpc.Message{To: settler, Data: transfer.OrderStatusCall(o.Intent.OrderID)}, rpc.Latest)
}

// findOpening looks for the event of an order's opening at each host: the one that has left it out before may do so again. A transaction that
// has failed or is in a block already is read again in its own time.
func (r *repairer) findOpening(ctx context.Context, at settlerView, o intents.Followed) ([]intents.Observation, error) {
	known, err := r.Store.Transactions(ctx, o.AccountID, o.TransferID)
	if err != nil {
		return nil, err
	}
	for _, provider := range r.chain.Providers() {
		at.provider, r.logs = provider, maxRepairLogs
		t, ok, err := r.findEvent(ctx, at, o, common.HexToAddress(o.Intent.Settlement.InputSettler), transfer.RoleOpen)
		delete(r.searches, eventKey{o.Key(), transfer.RoleOpen})
		if ok && slices.ContainsFunc(known, func(k transfer.Transaction) bool { return k.Hash == t.Hash && (k.Failed() || k.Block != nil) }) {
			return nil, nil
		}
		if ok {
			o.Transaction = transfer.Transaction{Role: t.Role, Chain: t.Chain, Hash: t.Hash, State: transfer.Pending, Reported: true}
			o.DueAt = r.Store.Now()
			return []intents.Observation{o.Observation}, nil
		}
		if err != nil {
			r.uncompared(o, err)
		}
	}
	return nil, nil
}
