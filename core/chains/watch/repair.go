package watch

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
	"intents.internal/pkg/caip"
)

// repairBatch is how many open orders one poll compares with their settlers.
const repairBatch = 100

// repair compares open orders with the settlers' own records, which should agree. If they differ, it finds the missed events and
// records them like any others.
func (l *loop) repair(ctx context.Context, v *view) error {
	orders, err := l.Store.DueOrders(ctx, l.id, repairBatch)
	if err != nil || len(orders) == 0 {
		return ofStore(err)
	}
	var seen []chains.Observation
	for _, side := range []struct {
		chain func(*transfer.Intent) (caip.ChainID, string)
		role  map[string]transfer.Role
	}{
		{originOf, map[string]transfer.Role{"SETTLED": transfer.RoleSettle, "REFUNDED": transfer.RoleRefund}},
		{destinationOf, map[string]transfer.Role{"FILLED": transfer.RoleFill}},
	} {
		missed, err := l.missedEvents(ctx, v, orders, side.chain, side.role)
		if err != nil {
			return err
		}
		seen = append(seen, missed...)
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

func originOf(i *transfer.Intent) (caip.ChainID, string) {
	return i.Source.Account.Chain, i.Settlement.OriginSettler
}

func destinationOf(i *transfer.Intent) (caip.ChainID, string) {
	return i.Destination.Account.Chain, i.Settlement.DestinationSettler
}

// missedEvents reads the statuses of orders from the settlers of one side and finds the events of those that differ. It skips orders
// on a chain without providers, and an order that cannot be compared: its next comparison may succeed, and the others do not wait.
func (l *loop) missedEvents(
	ctx context.Context, v *view, orders []chains.Followed, side func(*transfer.Intent) (caip.ChainID, string), roles map[string]transfer.Role,
) ([]chains.Observation, error) {
	byChain := map[caip.ChainID][]chains.Followed{}
	for _, o := range orders {
		id, _ := side(o.Intent)
		byChain[id] = append(byChain[id], o)
	}
	var seen []chains.Observation
	for id, list := range byChain {
		provider, confirmed, final, ok := l.providerOf(ctx, v, id)
		if !ok {
			continue
		}
		statuses, err := orderStatuses(ctx, provider, list, side, confirmed)
		if err != nil {
			l.uncompared(list[0], err)
			continue
		}
		for n, o := range list {
			role, hasEvent := roles[string(bytes.TrimRight(statuses[n].Value, "\x00"))]
			if statuses[n].Err != nil {
				l.uncompared(o, statuses[n].Err)
			}
			if !hasEvent {
				continue
			}
			_, settler := side(o.Intent)
			t, ok, err := l.findEvent(ctx, provider, o.Intent, id, common.HexToAddress(settler), role, confirmed)
			if err != nil {
				l.uncompared(o, err)
				continue
			}
			known, err := l.Store.Transactions(ctx, o.AccountID, o.TransferID)
			if err != nil {
				return nil, ofStore(err)
			}
			if !ok || isKnown(known, t) || t.Block.Number > final {
				continue
			}
			seen = append(seen, chains.Observation{AccountID: o.AccountID, TransferID: o.TransferID, Transaction: t})
		}
	}
	return seen, nil
}

// uncompared logs one of the orders that could not be compared.
func (l *loop) uncompared(o chains.Followed, err error) {
	if time.Since(l.uncomparedAt) < warnEvery {
		return
	}
	l.uncomparedAt = time.Now()
	l.log.Warn("open orders cannot be compared with their settlers; they are compared again later", "transfer_id", o.TransferID, "error", err)
}

func isKnown(known []transfer.Transaction, t transfer.Transaction) bool {
	for _, k := range known {
		if k.Hash == t.Hash && k.Role == t.Role && k.Chain == t.Chain {
			return true
		}
	}
	return false
}

// providerOf returns a provider of a chain with the chain's confirmed and final block.
func (l *loop) providerOf(ctx context.Context, v *view, id caip.ChainID) (provider *rpc.Provider, confirmed, final uint64, ok bool) {
	if id == l.id {
		return v.provider, v.confirmed, v.final, true
	}
	chain, ok := l.Client.Chain(id)
	if !ok {
		return nil, 0, 0, false
	}
	progress, err := l.Store.ChainProgress(ctx, id)
	providers := chain.Providers()
	if err != nil || !progress.Read || progress.Stopped != "" || len(providers) == 0 {
		return nil, 0, 0, false
	}
	return providers[0], progress.Confirmed, progress.Final, true
}

// orderStatuses calls orderStatus(bytes32) at a block. The results are text, padded with zeros on the right.
func orderStatuses(
	ctx context.Context, provider *rpc.Provider, orders []chains.Followed, side func(*transfer.Intent) (caip.ChainID, string), block uint64,
) ([]rpc.Result[[]byte], error) {
	return rpc.FetchEach(ctx, provider, orders, func(o chains.Followed) *rpc.Call[[]byte] {
		_, settler := side(o.Intent)
		return rpc.CallContract(rpc.Message{To: common.HexToAddress(settler), Data: transfer.OrderStatusCall(o.Intent.OrderID)}, rpc.Number(block))
	})
}

// findEvent looks for a settler's event about one order, from the newest block back to the time of the intent.
func (l *loop) findEvent(
	ctx context.Context, provider *rpc.Provider, intent *transfer.Intent, id caip.ChainID, settler common.Address, role transfer.Role, newest uint64,
) (t transfer.Transaction, ok bool, err error) {
	for to := newest; ; {
		from := to + 1 - min(to+1, provider.LogRange())
		logs := rpc.Logs(rpc.LogFilter{From: from, To: to, Addresses: []common.Address{settler}, Topics: [][]common.Hash{transfer.SettlerTopics}})
		first := rpc.BlockByNumber(rpc.Number(from))
		_ = provider.Do(ctx, logs, first) // Result returns the same error
		found, err := logs.Result()
		if errors.Is(err, rpc.ErrRange) && to > from {
			continue
		}
		if err != nil {
			return t, false, err
		}
		for _, log := range found {
			if t, ok = intent.MatchLog(id, log); ok && t.Role == role {
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
