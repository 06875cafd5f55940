package identities

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres"
)

// ChangePassword replaces the password of the owner, as read when the current one was checked, ends all of its sessions, links
// and invitations, and stores a new session for the browser. It returns account.ErrNotFound if the old session has ended, or if
// the account may no longer sign in or has another password since.
func (s *Store) ChangePassword(
	ctx context.Context, owner *account.Account, hash string, sessionID uuid.UUID, replacement *account.Session, entry account.AuditEntry,
) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var id uuid.UUID
		// The account's row is locked first, so that no session begins between the deletion and the commit.
		err := tx.db.NewRaw(`UPDATE accounts SET password_hash = $1, updated_at = ?
			WHERE id = ? AND password_hash = $2 AND deleted_at IS NULL AND disabled_at IS NULL RETURNING id`, entry.OccurredAt, owner.ID).
			Conn(postgres.Bind(tx.db.Tx, hash, owner.PasswordHash)).Scan(ctx, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return account.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("change the password of account %s: %w", owner.ID, err)
		}
		ended, err := tx.endAccess(ctx, owner.ID)
		if err != nil {
			return err
		}
		if !slices.Contains(ended, sessionID) {
			return account.ErrNotFound
		}
		if err := tx.insertSession(ctx, replacement); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}
