package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/account"
)

type accountRow struct {
	bun.BaseModel `bun:"table:accounts,alias:accounts"`

	ID           uuid.UUID  `bun:"id,pk"`
	Name         string     `bun:"name"`
	Email        string     `bun:"email"`
	PasswordHash string     `bun:"password_hash"`
	DisabledAt   *time.Time `bun:"disabled_at"`
	DeletedAt    *time.Time `bun:"deleted_at"`
	CreatedAt    time.Time  `bun:"created_at"`
	UpdatedAt    time.Time  `bun:"updated_at"`
}

func (r accountRow) account() *account.Account {
	return &account.Account{
		ID: r.ID, Name: r.Name, Email: r.Email, PasswordHash: r.PasswordHash,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// InsertAccount stores a new account. It returns account.ErrEmailTaken if another account has the address.
func (s *Store) InsertAccount(ctx context.Context, a *account.Account, entry account.AuditEntry) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.insertAccount(ctx, a); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

func (tx Tx) insertAccount(ctx context.Context, a *account.Account) error {
	row := accountRow{
		ID: a.ID, Name: a.Name, Email: a.Email, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
	_, err := tx.db.NewInsert().Model(&row).Value("password_hash", "$1").Returning("NULL").Conn(bind(tx.db.Tx, a.PasswordHash)).Exec(ctx)
	if brokenConstraint(err) == "accounts_email" {
		return account.ErrEmailTaken
	}
	if err != nil {
		return fmt.Errorf("insert account %s: %w", a.ID, err)
	}
	return nil
}

// AccountByEmail finds the account that may sign in with an address, or returns account.ErrNotFound.
func (s *Store) AccountByEmail(ctx context.Context, email string) (*account.Account, error) {
	var row accountRow
	err := s.db.NewSelect().Model(&row).
		Where("email = ? AND deleted_at IS NULL AND disabled_at IS NULL", email).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find an account by e-mail: %w", err)
	}
	return row.account(), nil
}

// SetPassword changes the password of the account with an address and ends its sessions. Like the methods below it returns
// account.ErrNotFound for an address that no account has.
func (s *Store) SetPassword(ctx context.Context, email, hash string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.PasswordReset, set: "password_hash = $1", to: hash, endsSessions: true,
	}, "email = ?", email, actor, now)
}

// DisableAccount refuses an account's keys and sign-ins until it is enabled again, and ends its sessions.
func (s *Store) DisableAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.AccountDisabled, set: "disabled_at = $1", to: now, endsSessions: true,
	}, "email = ?", email, actor, now)
}

// EnableAccount reverses DisableAccount.
func (s *Store) EnableAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.AccountEnabled, set: "disabled_at = $1", to: nil,
	}, "email = ?", email, actor, now)
}

// accountDeletion ends an account for good: its sessions end, its keys are refused, its identities are free again, and its intents
// stay for audit.
func accountDeletion(now time.Time) accountChange {
	return accountChange{
		action: account.AccountDeleted, set: "deleted_at = $1", to: now, endsSessions: true, freesIdentities: true,
	}
}

// DeleteAccount ends the account of an address for good.
func (s *Store) DeleteAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountDeletion(now), "email = ?", email, actor, now)
}

// DeleteAccountByID ends an account for good. It returns account.ErrNotFound for one that has ended already.
func (s *Store) DeleteAccountByID(ctx context.Context, accountID uuid.UUID, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountDeletion(now), "id = ?", accountID, actor, now)
}

// accountChange is one assignment to an account's row, whose value is the parameter $1, and its side effects.
type accountChange struct {
	action          account.Action
	set             string
	to              any
	endsSessions    bool
	freesIdentities bool
}

func (s *Store) changeAccount(ctx context.Context, c accountChange, where string, is any, actor account.Actor, now time.Time) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var id uuid.UUID
		// The account's row is locked first, so that no session begins between the two deletions and the commit.
		err := tx.db.NewUpdate().Model((*accountRow)(nil)).Set(c.set).Set("updated_at = ?", now).
			Where(where, is).Where("deleted_at IS NULL").Returning("id").Conn(bind(tx.db.Tx, c.to)).Scan(ctx, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return account.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("change an account (%s): %w", c.action, err)
		}
		if c.endsSessions {
			if _, err := tx.db.NewDelete().Model((*sessionRow)(nil)).Where("account_id = ?", id).Exec(ctx); err != nil {
				return fmt.Errorf("end the sessions of account %s: %w", id, err)
			}
		}
		if c.freesIdentities {
			if _, err := tx.db.NewDelete().Model((*identityRow)(nil)).Where("account_id = ?", id).Exec(ctx); err != nil {
				return fmt.Errorf("free the identities of account %s: %w", id, err)
			}
		}
		entry, err := account.NewAuditEntry(id, actor, c.action, now)
		if err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}
