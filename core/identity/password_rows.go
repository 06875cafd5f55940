package identity

import (
	"context"
	"fmt"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// ChangePassword replaces the password of the owner, as read when the current one was checked, ends all of its sessions, links
// and invitations, and stores a new session for the browser. It returns account.ErrSignedOut if the account has another password since.
func (tx Tx) ChangePassword(
	ctx context.Context, by access.Rights, owner *account.Account, hash string, replacement *account.Session, entry account.AuditEntry,
) error {
	if err := by.Cover(tx.Tx, owner.ID); err != nil {
		return err
	}
	changed, err := postgres.RowsChanged(tx.db.NewRaw("UPDATE accounts SET password_hash = $1, updated_at = ? WHERE id = ? AND password_hash = $2",
		entry.OccurredAt, owner.ID).Conn(postgres.Bind(tx.db.Tx, hash, owner.PasswordHash)).Exec(ctx))
	if err != nil {
		return fmt.Errorf("change the password of account %s: %w", owner.ID, err)
	}
	if changed == 0 {
		return account.ErrSignedOut
	}
	if err := tx.endAccess(ctx, owner.ID); err != nil {
		return err
	}
	if err := tx.insertSession(ctx, replacement); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}

// RemovePassword removes the password of the person of the rights, and ends the person's other sessions and links.
func (tx Tx) RemovePassword(ctx context.Context, by access.Rights, entry account.AuditEntry) error {
	if err := by.Cover(tx.Tx, by.Person.ID); err != nil {
		return err
	}
	person := by.Person.ID
	if _, err := tx.db.NewRaw("UPDATE accounts SET password_hash = '', updated_at = ? WHERE id = ?", entry.OccurredAt, person).Exec(ctx); err != nil {
		return fmt.Errorf("remove the password of account %s: %w", person, err)
	}
	_, err := tx.db.NewDelete().Model((*sessionRow)(nil)).Where("account_id = ? AND id <> ?", person, by.Session.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end the other sessions of account %s: %w", person, err)
	}
	if err := tx.deleteLinks(ctx, person); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}
