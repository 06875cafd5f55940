package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/account"
)

// RotateKey puts the key that rotate makes in the place of one of an account's keys and returns it. The old key is
// deleted at once if rotate leaves its RotatedAt nil; otherwise it is kept as rotate left it. It returns an error of
// rotate's as it is, account.ErrNotFound for a key the account does not have, and account.ErrTooMany where the old key's
// grace would leave the account with more than account.MaxKeys.
func (s *Store) RotateKey(
	ctx context.Context, accountID, keyID uuid.UUID,
	rotate func(*account.Key) (next *account.Key, entry account.AuditEntry, err error),
) (*account.Key, error) {
	var next *account.Key
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := lockKeys(ctx, tx, accountID); err != nil {
			return err
		}
		old, err := findKey(ctx, tx.NewSelect().For("UPDATE"), accountID, keyID)
		if err != nil {
			return err
		}
		var entry account.AuditEntry
		if next, entry, err = rotate(old); err != nil {
			return err
		}
		if old.RotatedAt == nil {
			err = deleteKey(ctx, tx, old.ID, next.CreatedAt)
		} else {
			err = updateKey(ctx, tx, old)
		}
		if err != nil {
			return err
		}
		if err := insertKey(ctx, tx, next); err != nil {
			return err
		}
		return audit(ctx, tx, entry)
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}
