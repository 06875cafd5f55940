package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
)

// origins returns the account's origins. The row may be nil, see limit.
func (r *accountRow) origins() []string {
	if r == nil {
		return nil
	}
	return r.Origins
}

// Origins returns the origins of an account, none for an account that does not exist.
func (s *Store) Origins(ctx context.Context, accountID uuid.UUID) ([]string, error) {
	return readOrigins(ctx, s.db.NewSelect(), accountID)
}

func readOrigins(ctx context.Context, query *bun.SelectQuery, accountID uuid.UUID) ([]string, error) {
	var rows []accountRow
	if err := query.Model(&rows).Column("origins").Where("id = ?", accountID).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the origins of account %s: %w", accountID, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0].Origins, nil
}

// SetOrigins replaces the origins of an account by what account.ParseOrigins returned. Without a change nothing is written.
func (s *Store) SetOrigins(ctx context.Context, grant access.Grant, accountID uuid.UUID, origins []string, entry account.AuditEntry) error {
	return s.InTx(ctx, grant.Turn(accountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.Tx, accountID); err != nil {
			return err
		}
		before, err := readOrigins(ctx, tx.db.NewSelect().For("NO KEY UPDATE"), accountID)
		if err != nil || slices.Equal(before, origins) {
			return err
		}
		_, err = tx.db.NewRaw("UPDATE accounts SET origins = ?, updated_at = ? WHERE id = ?", pgdialect.Array(origins), entry.OccurredAt, accountID).Exec(ctx)
		if err != nil {
			return fmt.Errorf("change the origins of account %s: %w", accountID, err)
		}
		entry.Detail = account.DescribeOrigins(origins)
		return tx.Audit(ctx, entry)
	})
}
