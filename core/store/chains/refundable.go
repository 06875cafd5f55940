package chains

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
)

// WriteRefundableEvents writes the event of a batch of refundable open orders, once for each order, and returns their number; 0 means
// that none is left. It selects by the rule of transfer.Intent.Refundable, chain by chain: orders whose source chain has not been
// read past their expiry are not looked at. Any number of cores may call it concurrently: each skips the rows that another
// has locked.
func (s *Store) WriteRefundableEvents(ctx context.Context) (written int, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var events []transfer.Event
	err = s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var rows []intents.TransferRow
		err := tx.db.NewSelect().Model(&rows).
			Join("JOIN watched_chains ON chain_id = source_chain AND expires < complete_until").
			Where("status = ? AND type <> ? AND refundable_at IS NULL", transfer.Confirmed, transfer.Transfer).
			Where(`NOT EXISTS (SELECT FROM transactions WHERE transactions.account_id = transfers.account_id
				AND transactions.transfer_id = transfers.id AND role NOT IN (?, ?))`, transfer.RoleSend, transfer.RoleOpen).
			Limit(intents.ExpireBatch).For("UPDATE OF transfers SKIP LOCKED").Scan(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		events, err = tx.writeRefundableEvents(ctx, rows)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find refundable transfers: %w", err)
	}
	s.intents.CountTransitions(events)
	return len(events), nil
}

// writeRefundableEvents writes the events of locked intents that are still refundable.
func (tx Tx) writeRefundableEvents(ctx context.Context, rows []intents.TransferRow) (events []transfer.Event, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]intents.TransferKey, len(rows))
	for n, row := range rows {
		keys[n] = intents.TransferKey{AccountID: row.AccountID, ID: row.ID}
	}
	known, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return nil, err
	}
	readUntil, err := tx.completeUntil(ctx)
	if err != nil {
		return nil, err
	}
	var changed []*transfer.Intent
	for n, row := range rows {
		intent, err := row.Intent()
		if err != nil {
			return nil, err
		}
		history := transfer.History{Transactions: transactionsOf(known[keys[n]]), SourceReadUntil: readUntil[row.SourceChain]}
		if !intent.Refundable(history) {
			continue
		}
		event, err := intent.Apply(transfer.Command{Trigger: transfer.Refundable}, now)
		if err != nil {
			return nil, err
		}
		changed, events = append(changed, intent), append(events, event)
	}
	return events, tx.SaveTransitions(ctx, changed, events)
}

// completeUntil reads until when each chain is completely read, by its own clock.
func (tx Tx) completeUntil(ctx context.Context) (map[string]time.Time, error) {
	var rows []watchedChainRow
	if err := tx.db.NewSelect().Model(&rows).Where("complete_until IS NOT NULL").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read until when the chains are read: %w", err)
	}
	until := make(map[string]time.Time, len(rows))
	for _, row := range rows {
		until[row.ChainID] = row.Complete
	}
	return until, nil
}
