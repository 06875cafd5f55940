package intents

import (
	"context"
	"fmt"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
)

// WriteRefundableEvents writes the event of a batch of refundable open orders, once for each order, and returns their number; 0 means
// that none is left. It selects by the rule of transfer.Intent.Refundable, chain by chain: orders whose source chain has not been
// read past their expiry are not looked at. Any number of cores may call it concurrently: each skips the rows that another
// has locked. An order that is answered, and was not marked so when the answer was written, is marked and not looked at again.
func (s *Store) WriteRefundableEvents(ctx context.Context) (written int, err error) {
	for more := true; more && written == 0; {
		if written, more, err = s.writeRefundableBatch(ctx); err != nil {
			return 0, fmt.Errorf("find refundable transfers: %w", err)
		}
	}
	return written, nil
}

// writeRefundableBatch looks at one batch of orders. more is true if it only marked orders, and there may be others.
func (s *Store) writeRefundableBatch(ctx context.Context) (written int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var events []transfer.Event
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		var rows []TransferRow
		err := tx.db.NewSelect().Model(&rows).
			Join("JOIN watched_chains ON chain_id = source_chain AND expires < complete_until").
			Where("status = ? AND type <> ? AND refundable_at IS NULL AND NOT answered", transfer.Confirmed, transfer.Transfer).
			Limit(ExpireBatch).For("UPDATE OF transfers SKIP LOCKED").Scan(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		var marked int
		events, marked, err = tx.writeRefundableEvents(ctx, rows)
		more = marked > 0
		return err
	})
	if err != nil {
		return 0, false, err
	}
	s.CountTransitions(events)
	return len(events), more, nil
}

// writeRefundableEvents writes the events of locked intents that are still refundable, and marks those that will not be.
func (tx Tx) writeRefundableEvents(ctx context.Context, rows []TransferRow) (events []transfer.Event, marked int, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	keys := make([]TransferKey, len(rows))
	for n, row := range rows {
		keys[n] = TransferKey{AccountID: row.AccountID, ID: row.ID}
	}
	known, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return nil, 0, err
	}
	progress, err := watched.Within(tx.db).AllProgress(ctx)
	if err != nil {
		return nil, 0, err
	}
	var changed []*transfer.Intent
	var answered []answeredRow
	for n, row := range rows {
		intent, err := row.Intent()
		if err != nil {
			continue // it is left to the version that can read it
		}
		history := transfer.History{Transactions: transactionsOf(known[keys[n]]), SourceReadUntil: progress[intent.Source.Account.Chain].CompleteUntil}
		if intent.Answered(history.Transactions) {
			answered = append(answered, answeredRow{row.AccountID, row.ID, true})
		}
		if !intent.Refundable(history) {
			continue
		}
		event, err := intent.Apply(transfer.Command{Trigger: transfer.Refundable}, now)
		if err != nil {
			return nil, 0, err
		}
		changed, events = append(changed, intent), append(events, event)
	}
	if err := tx.writeAnswered(ctx, answered); err != nil {
		return nil, 0, err
	}
	return events, len(answered), tx.SaveTransitions(ctx, changed, events)
}
