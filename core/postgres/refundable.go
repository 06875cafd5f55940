package postgres

import (
	"context"
	"fmt"

	"intents.internal/core/transfer"
)

// TellRefundable writes the event of a batch of refundable open orders, once for each order, and returns their number; 0 means
// that none is left. A block of the destination chain must have passed since the deadline and, if the chain is followed, must
// have been read, so that an order that was filled in time is excluded. Any number of cores may call it concurrently: each skips
// the rows that another has locked.
func (s *Store) TellRefundable(ctx context.Context) (told int, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var events []transfer.Event
	err = s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var rows []transferRow
		err := tx.db.NewSelect().Model(&rows).
			Where("status = ? AND type <> ? AND refundable_at IS NULL AND deadline <= statement_timestamp()", transfer.Confirmed, transfer.Transfer).
			Where("deadline + "+destinationBlockTime+" <= statement_timestamp()").
			Where("NOT EXISTS (SELECT FROM watched_chains WHERE chain_id = destination_chain AND read_at < deadline + 2 * "+destinationBlockTime+")").
			Where(`NOT EXISTS (SELECT FROM transactions WHERE transactions.account_id = transfers.account_id
				AND transactions.transfer_id = transfers.id AND role NOT IN (?, ?))`, transfer.RoleSend, transfer.RoleOpen).
			Order("deadline").Limit(expireBatch).For("UPDATE SKIP LOCKED").Scan(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		events, err = tx.tellRefundable(ctx, rows)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find refundable transfers: %w", err)
	}
	s.metrics.countEvents(events)
	return len(events), nil
}

// destinationBlockTime is the time between two blocks of an intent's destination chain.
const destinationBlockTime = "coalesce((SELECT block_time_ms FROM chains WHERE id = destination_chain), 12000) * interval '1 ms'"

// tellRefundable writes the events of locked intents that are still refundable.
func (tx Tx) tellRefundable(ctx context.Context, rows []transferRow) (events []transfer.Event, err error) {
	now, err := tx.now(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]transferKey, len(rows))
	for n, row := range rows {
		keys[n] = transferKey{row.AccountID, row.ID}
	}
	known, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return nil, err
	}
	var changed []*transfer.Intent
	for n, row := range rows {
		intent, err := row.intent()
		if err != nil {
			return nil, err
		}
		if !intent.Refundable(transfer.History{Transactions: transactionsOf(known[keys[n]])}, now) {
			continue
		}
		event, err := intent.Apply(transfer.Command{Trigger: transfer.Refundable}, now)
		if err != nil {
			return nil, err
		}
		changed, events = append(changed, intent), append(events, event)
	}
	return events, tx.saveTransitions(ctx, changed, events)
}
