package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

// Identities lists the identities of an account, oldest first.
func (s *Store) Identities(ctx context.Context, accountID uuid.UUID) ([]account.LinkedIdentity, error) {
	var rows []identityRow
	err := s.db.NewSelect().Model(&rows).Where("account_id = ?", accountID).Order("created_at", "issuer", "subject").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the identities of account %s: %w", accountID, err)
	}
	return linkedIdentities(rows), nil
}

func linkedIdentities(rows []identityRow) []account.LinkedIdentity {
	linked := make([]account.LinkedIdentity, len(rows))
	for i, row := range rows {
		linked[i] = account.LinkedIdentity{Identity: row.identity(), LinkedAt: row.CreatedAt.UTC()}
	}
	return linked
}

func (r identityRow) identity() account.Identity {
	return account.Identity{Issuer: r.Issuer, Subject: r.Subject}
}

// IdentitiesByResetToken lists the identities of the account whose password a token resets, oldest first, none for a token that does not
// work. Nothing is listed of an account that has only a placeholder, which its identity makes, and of one that would lose its address
// to a new account: they keep their identities.
func (s *Store) IdentitiesByResetToken(ctx context.Context, hash [32]byte, now time.Time) ([]account.LinkedIdentity, error) {
	var rows []identityRow
	err := s.db.NewSelect().Model(&rows).
		Join("JOIN accounts ON accounts.id = identities.account_id").Join("JOIN reset_tokens ON reset_tokens.account_id = accounts.id").
		Where("reset_tokens.hash = $1 AND reset_tokens.expires_at > ?", now).Where("accounts.deleted_at IS NULL AND accounts.disabled_at IS NULL").
		Where("accounts.email NOT LIKE ?", "%.invalid").
		Where("(reset_tokens.email IS DISTINCT FROM accounts.email OR "+keepsEmail+")", network.Live).
		Order("identities.created_at", "issuer", "subject").Conn(postgres.Bind(s.db.Pool(), hash[:])).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list identities by reset token: %w", err)
	}
	return linkedIdentities(rows), nil
}

// unlinkAll removes all identities of the account of an entry, whose row is locked, and writes an entry for each.
func (tx Tx) unlinkAll(ctx context.Context, of account.AuditEntry) error {
	var rows []identityRow
	err := tx.db.NewRaw("DELETE FROM identities WHERE account_id = ? RETURNING issuer, subject", of.AccountID).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("delete the identities of account %s: %w", of.AccountID, err)
	}
	for _, row := range rows {
		entry, err := account.NewAuditEntry(of.AccountID, of.Actor, account.IdentityUnlinked, of.OccurredAt)
		if err != nil {
			return err
		}
		entry.Detail = row.identity().String() + "; with the reset of the password"
		if err := tx.Audit(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// LinkIdentity links an identity to the account of the entry; one that is already linked is no error. It returns
// account.ErrIdentityTaken if another account has the identity, and account.ErrTooManyIdentities.
func (tx Tx) LinkIdentity(ctx context.Context, by access.Rights, identity account.Identity, entry account.AuditEntry) error {
	accountID := entry.AccountID
	if err := by.Cover(tx.Tx, accountID); err != nil {
		return err
	}
	row := identityRow{Issuer: identity.Issuer, Subject: identity.Subject, AccountID: accountID, CreatedAt: entry.OccurredAt}
	inserted, err := postgres.RowsChanged(tx.db.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Exec(ctx))
	if err != nil {
		return fmt.Errorf("insert an identity of account %s: %w", accountID, err)
	}
	if inserted == 0 {
		if owned, err := tx.ownsIdentity(ctx, accountID, identity); err != nil || owned {
			return err
		}
		return account.ErrIdentityTaken
	}
	count, err := tx.db.NewSelect().Model((*identityRow)(nil)).Where("account_id = ?", accountID).Count(ctx)
	if err != nil {
		return fmt.Errorf("count the identities of account %s: %w", accountID, err)
	}
	if count > account.MaxIdentities {
		return account.ErrTooManyIdentities
	}
	return tx.Audit(ctx, entry)
}

// UnlinkIdentity removes an identity from the person of the rights and ends the person's other sessions, which the identity may have
// started. issuers are those that are configured now, and passkey is whether the person can sign in with one. It returns
// account.ErrIdentityNotFound, and account.ErrLastWayIn if neither a password nor a passkey nor an identity of issuers would remain.
func (tx Tx) UnlinkIdentity(
	ctx context.Context, by access.Rights, identity account.Identity, issuers []string, passkey bool, entry account.AuditEntry,
) error {
	if err := by.Cover(tx.Tx, entry.AccountID); err != nil {
		return err
	}
	person, session := by.Person, by.Session
	unlinked, err := postgres.RowsChanged(tx.db.NewDelete().Model((*identityRow)(nil)).
		Where("issuer = ? AND subject = ? AND account_id = ?", identity.Issuer, identity.Subject, person.ID).Exec(ctx))
	if err != nil {
		return fmt.Errorf("delete an identity of account %s: %w", person.ID, err)
	}
	if unlinked == 0 {
		return account.ErrIdentityNotFound
	}
	left, err := tx.HasIdentityOf(ctx, person.ID, issuers)
	if err != nil {
		return err
	}
	if !left && !passkey && person.PasswordHash == "" {
		return account.ErrLastWayIn
	}
	// The identity's next sign-in creates a new account, whose placeholder address must be free.
	_, err = tx.db.NewUpdate().Model((*accountRow)(nil)).Set("email = id || '@unlinked.invalid'").Set("updated_at = ?", entry.OccurredAt).
		Where("id = ? AND email = ?", person.ID, identity.Placeholder()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("free the placeholder of account %s: %w", person.ID, err)
	}
	_, err = tx.db.NewDelete().Model((*sessionRow)(nil)).Where("account_id = ? AND id <> ?", person.ID, session.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end the other sessions of account %s: %w", person.ID, err)
	}
	return tx.Audit(ctx, entry)
}

// HasIdentityOf reports whether a person has an identity of one of the issuers.
func (tx Tx) HasIdentityOf(ctx context.Context, person uuid.UUID, issuers []string) (bool, error) {
	has, err := tx.db.NewSelect().Model((*identityRow)(nil)).Where("account_id = ? AND issuer IN (?)", person, bun.List(issuers)).Exists(ctx)
	if err != nil {
		return false, fmt.Errorf("look for an identity of account %s: %w", person, err)
	}
	return has, nil
}

func (tx Tx) ownsIdentity(ctx context.Context, accountID uuid.UUID, identity account.Identity) (bool, error) {
	owned, err := tx.db.NewSelect().Model((*identityRow)(nil)).
		Where("issuer = ? AND subject = ? AND account_id = ?", identity.Issuer, identity.Subject, accountID).Exists(ctx)
	if err != nil {
		return false, fmt.Errorf("find an identity of account %s: %w", accountID, err)
	}
	return owned, nil
}
