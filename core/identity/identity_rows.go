package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

type identityRow struct {
	bun.BaseModel `bun:"table:identities,alias:identities"`

	Issuer    string    `bun:"issuer,pk"`
	Subject   string    `bun:"subject,pk"`
	AccountID uuid.UUID `bun:"account_id"`
	CreatedAt time.Time `bun:"created_at"`
}

// InsertAccountWithIdentity stores a new account and its identity. It returns account.ErrIdentityTaken if another account has the
// identity, and account.ErrEmailTaken if another keeps the address. A verified address is taken from an account that cannot keep
// it, see takeEmail.
func (s *Store) InsertAccountWithIdentity(ctx context.Context, a *account.Account, identity account.Identity, entry account.AuditEntry) error {
	row := identityRow{Issuer: identity.Issuer, Subject: identity.Subject, AccountID: a.ID, CreatedAt: a.CreatedAt}
	return s.InTx(ctx, access.TurnOfEmail(a.Email), func(ctx context.Context, tx Tx) error {
		if a.EmailVerified() {
			if err := tx.takeEmail(ctx, a.Email, a.CreatedAt); err != nil {
				return err
			}
		}
		if err := tx.insertAccount(ctx, a); err != nil {
			return err
		}
		_, err := tx.db.NewInsert().Model(&row).Exec(ctx)
		if postgres.BrokenConstraint(err) == "identities_pkey" {
			return account.ErrIdentityTaken
		}
		if err != nil {
			return fmt.Errorf("insert an identity of account %s: %w", a.ID, err)
		}
		return tx.Audit(ctx, entry)
	})
}

// AccountByIdentity finds the account that may sign in with an identity, or returns account.ErrNotFound.
func (s *Store) AccountByIdentity(ctx context.Context, identity account.Identity) (*account.Account, error) {
	var row accountRow
	err := s.db.NewSelect().Model(&row).Join("JOIN identities ON identities.account_id = accounts.id").
		Where("identities.issuer = ? AND identities.subject = ?", identity.Issuer, identity.Subject).
		Where("accounts.deleted_at IS NULL AND accounts.disabled_at IS NULL").Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find an account by identity: %w", err)
	}
	return row.account(), nil
}
