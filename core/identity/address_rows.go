package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

// InsertSignUp stores a new account and the mail to its address, or only the mail if another account has the address. The mail has the
// name and the password in both cases, and the sign-up is not in the audit log until its link is used. The statements are the same in
// both cases, so that their duration reveals little; Persons.SignUp hides the rest.
func (s *Store) InsertSignUp(ctx context.Context, a *account.Account, callback string) error {
	return s.InTx(ctx, access.TurnOfEmail(a.Email), func(ctx context.Context, tx Tx) error {
		_, err := tx.db.NewRaw(`INSERT INTO accounts (id, name, email, password_hash, verification_required, created_at, updated_at)
			VALUES (?0, ?1, ?2, $1, ?3, ?4, ?4) ON CONFLICT (email) WHERE deleted_at IS NULL DO NOTHING`,
			a.ID, a.Name, a.Email, a.VerificationRequired, a.CreatedAt).Conn(postgres.Bind(tx.db.Tx, a.PasswordHash)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("insert the sign-up of account %s: %w", a.ID, err)
		}
		return mail.Within(tx.db).Insert(ctx, mail.Draft{
			Kind: mail.KindSignUp, Recipient: a.Email, AccountID: a.ID, Callback: callback, Name: a.Name, PasswordHash: a.PasswordHash,
		})
	})
}

// VerifyEmail records that the owner of an account receives the mail of its address, on an operator's authority.
func (s *Store) VerifyEmail(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.EmailVerified, set: "email_verified_at = coalesce(email_verified_at, $1)", to: now,
	}, "email = ?", email, actor, now)
}

// AccountByID finds an account that may sign in, or returns account.ErrNotFound.
func (s *Store) AccountByID(ctx context.Context, id uuid.UUID) (*account.Account, error) {
	var row accountRow
	err := s.db.NewSelect().Model(&row).Where("id = ? AND deleted_at IS NULL AND disabled_at IS NULL", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find account %s: %w", id, err)
	}
	return row.account(), nil
}

// EmailHeld reports whether an account keeps its address even if another person proves to receive its mail.
func (s *Store) EmailHeld(ctx context.Context, email string) (held bool, err error) {
	err = s.db.NewRaw("SELECT coalesce(bool_or("+keepsEmail+"), false) FROM accounts WHERE email = ?1 AND deleted_at IS NULL", network.Live, email).
		Scan(ctx, &held)
	if err != nil {
		return false, fmt.Errorf("ask whether an address is held: %w", err)
	}
	return held, nil
}

// keepsEmail is the condition for an account that keeps its address: its owner proved it, or has created a live key, or the
// operator has disabled the account. ?0 is the environment of live keys. Deleted keys count, because their rows remain.
const keepsEmail = `(email_verified_at IS NOT NULL OR disabled_at IS NOT NULL
	OR EXISTS (SELECT FROM api_keys WHERE account_id = accounts.id AND environment = ?0))`

// takeEmail frees an address for a person who proved to receive its mail. An account that has the address and never proved it
// gets a placeholder under .invalid instead, with which its password works; its sessions and keys remain. It returns
// account.ErrEmailTaken if the account keeps the address.
func (tx Tx) takeEmail(ctx context.Context, email string, now time.Time) error {
	var id uuid.UUID
	// The row is locked first: a verification and a live key also lock it, so neither can happen concurrently.
	err := tx.db.NewRaw("SELECT id FROM accounts WHERE email = ? AND deleted_at IS NULL FOR UPDATE", email).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock the account of an address: %w", err)
	}
	var held bool
	if err := tx.db.NewRaw("SELECT "+keepsEmail+" FROM accounts WHERE id = ?1", network.Live, id).Scan(ctx, &held); err != nil {
		return fmt.Errorf("ask whether account %s keeps its address: %w", id, err)
	}
	if held {
		return account.ErrEmailTaken
	}
	lost := account.LostEmail(id)
	_, err = tx.db.NewRaw("UPDATE accounts SET email = ?, verification_required = false, updated_at = ? WHERE id = ?", lost, now, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("take the address of account %s: %w", id, err)
	}
	if err := tx.deleteLinks(ctx, id); err != nil {
		return err
	}
	entry, err := account.NewAuditEntry(id, account.Actor{}, account.EmailLost, now) // the entry does not reveal who took the address
	if err != nil {
		return err
	}
	entry.Detail = "its owner proved to receive its mail, which this account never did; sign in as " + lost
	return tx.Audit(ctx, entry)
}
