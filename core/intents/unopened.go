package intents

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// OverdueOrders reads the swaps and bridges from a chain of which no transaction is known and whose deadlines are after a time and up to
// another, by deadline, up to limit of them. They are few: what has been compared expires.
func (s *Store) OverdueOrders(ctx context.Context, chain caip.ChainID, after, until time.Time, limit int64) ([]Followed, error) {
	var rows []TransferRow
	err := s.db.NewSelect().Model(&rows).Where("status = ? AND deadline > ? AND deadline <= ?", transfer.Created, after, until).
		Where("source_chain = ? AND type <> ?", chain.String(), transfer.Transfer).Order("deadline").Limit(limit).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the overdue orders of %s: %w", chain, err)
	}
	var overdue []Followed
	for _, intent := range readEach(s, rows, TransferRow.Intent) {
		overdue = append(overdue, Followed{Observation{AccountID: intent.AccountID, TransferID: intent.ID}, intent})
	}
	return overdue, nil
}

// SaveUnopened records that the orders of a chain whose deadlines are up to a time have been compared with their settlers, if no opening of
// theirs was known: see Store.ExpireTransfers.
func (s *Store) SaveUnopened(ctx context.Context, lease Lease, until time.Time) error {
	return s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		if err := tx.checkEpoch(ctx, lease); err != nil {
			return err
		}
		_, err := tx.db.NewRaw("UPDATE watched_chains SET unopened_until = ? WHERE chain_id = ?", until, lease.Chain.String()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("record which orders of %s are not opened: %w", lease.Chain, err)
		}
		return nil
	})
}
