package intents

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// Update changes the reference and the labels of one of an account's intents, in any status, and writes the change and its event in one
// transaction. It returns the intent as it is then, ErrTransferNotFound or transfer.ErrTooManyLabels. What changes nothing writes nothing.
func (s *Store) Update(ctx context.Context, accountID, id uuid.UUID, update wire.TransferUpdate) (intent *transfer.Intent, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, postgres.TurnOf(id), func(ctx context.Context, tx Tx) (err error) {
		if intent, err = tx.LockTransfer(ctx, accountID, id); err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		event, before, changed, err := intent.Update(update, now)
		if err != nil || !changed {
			return err
		}
		return tx.saveUpdate(ctx, intent, event, before)
	})
	if err != nil {
		return nil, err
	}
	return intent, nil
}

// saveUpdate writes an intent's reference and labels, the event, and what they were before it.
func (tx Tx) saveUpdate(ctx context.Context, i *transfer.Intent, event transfer.Event, before transfer.Naming) error {
	_, err := tx.db.NewRaw(`WITH renamed AS (
			UPDATE transfers SET reference = NULLIF(?0, ''), labels = NULLIF(?1, ''), updated_at = ?2 WHERE account_id = ?3 AND id = ?4
		), new (`+eventColumns+`) AS (?5), event AS (`+insertNewEvents+` RETURNING sequence)
		INSERT INTO transfer_updates (account_id, transfer_id, sequence, reference, labels)
		SELECT ?3, ?4, sequence, NULLIF(?6, ''), NULLIF(?7, '') FROM event`,
		i.Reference, i.Labels, i.UpdatedAt, i.AccountID, i.ID, tx.newEvents([]transfer.Event{event}), before.Reference, before.Labels).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the update of transfer %s: %w", i.ID, err)
	}
	return nil
}

// readFirst sets First of those of an account's intents that were updated, which a repeated request is compared with.
func (s *Store) readFirst(ctx context.Context, accountID uuid.UUID, intents ...*transfer.Intent) error {
	ids := make([]uuid.UUID, len(intents))
	for n, i := range intents {
		ids[n] = i.ID
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		TransferID uuid.UUID
		Reference  string      `bun:",nullzero"`
		Labels     wire.Labels `bun:",nullzero"`
	}
	err := s.db.NewRaw(`SELECT first.* FROM transfers CROSS JOIN LATERAL (
			SELECT transfer_id, reference, labels FROM transfer_updates WHERE account_id = ?0 AND transfer_id = transfers.id ORDER BY sequence LIMIT 1
		) AS first WHERE account_id = ?0 AND id IN (?1)`, accountID, bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read what %d transfers were called first: %w", len(ids), err)
	}
	for _, row := range rows {
		for _, i := range intents {
			if i.ID == row.TransferID {
				i.First = &transfer.Naming{Reference: row.Reference, Labels: row.Labels}
			}
		}
	}
	return nil
}
