package identity

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/postgres"
)

// Link is the effect of a mailed link that proves an address.
type Link struct {
	Purpose   account.LinkPurpose
	AccountID uuid.UUID
	// Email is the address of the account when the link was made.
	Email string
	// NewEmail is the account's new address, empty if the address does not change.
	NewEmail string
	// SignUp is what the link gives to an account that nobody has entered yet, empty for nothing.
	SignUp SignUp
	// Notice is who gets a mail about a changed address, at the one that the account has had. It is not stored.
	Notice account.Notice
}

// SignUp is the name and the password of one sign-up. They stand once the link that was mailed for it is used, so that nobody else's
// sign-up with the address replaces them, or is replaced by them before.
type SignUp struct {
	Name         string
	PasswordHash string
}

// InsertLink stores a link for one use until it expires. Its token is identified by its SHA-256.
func (s *Store) InsertLink(ctx context.Context, hash [32]byte, l Link, expiresAt time.Time) error {
	_, err := s.db.NewRaw(`INSERT INTO link_tokens (hash, purpose, account_id, email, new_email, expires_at, name, password_hash)
		VALUES ($1, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), nullif($2::text, ''))`, l.Purpose, l.AccountID, l.Email, l.NewEmail, expiresAt, l.SignUp.Name).
		Conn(postgres.Bind(s.db.Pool(), hash[:], l.SignUp.PasswordHash)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert a link of account %s: %w", l.AccountID, err)
	}
	return nil
}

// LinkByToken finds a link that works, or returns account.ErrNotFound.
func (s *Store) LinkByToken(ctx context.Context, hash [32]byte, now time.Time) (*Link, error) {
	var l Link
	err := s.db.NewRaw(`SELECT purpose, account_id, link_tokens.email, coalesce(new_email, '') AS new_email,
			coalesce(link_tokens.name, '') AS name, coalesce(link_tokens.password_hash, '') AS password_hash
		FROM link_tokens JOIN accounts ON accounts.id = account_id AND accounts.email = link_tokens.email
		WHERE hash = $1 AND expires_at > ? AND deleted_at IS NULL AND disabled_at IS NULL`, now).
		Conn(postgres.Bind(s.db.Pool(), hash[:])).Scan(ctx, &l.Purpose, &l.AccountID, &l.Email, &l.NewEmail, &l.SignUp.Name, &l.SignUp.PasswordHash)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find a link: %w", err)
	}
	return &l, nil
}

// UseLink uses a link once. It verifies the address, or queues the next mail of a confirmed change, or changes the address, which
// it may take from an account that cannot keep it. It returns the account that the link was for in the end, see verifySignUp, or
// account.ErrNotFound for a link that was used or has expired since, and account.ErrEmailTaken, which ends the link too, if another
// account keeps the new address.
func (s *Store) UseLink(ctx context.Context, hash [32]byte, l *Link, next mail.Draft, actor account.Actor, now time.Time) (id uuid.UUID, err error) {
	var taken error
	id = l.AccountID
	err = s.InTx(ctx, postgres.TurnOf(l.AccountID), func(ctx context.Context, tx Tx) error {
		owner, err := tx.lockOwner(ctx, l.AccountID)
		if err != nil {
			return err
		}
		deleted, err := postgres.RowsChanged(tx.db.NewRaw("DELETE FROM link_tokens WHERE hash = $1 AND expires_at > ?", now).
			Conn(postgres.Bind(tx.db.Tx, hash[:])).Exec(ctx))
		if err != nil {
			return fmt.Errorf("use a link of account %s: %w", l.AccountID, err)
		}
		if deleted == 0 || owner.Email != l.Email { // a concurrent use was first
			return account.ErrNotFound
		}
		switch l.Purpose {
		case account.VerifyEmail:
			id, err = tx.verifySignUp(ctx, owner, l, actor, now)
			if errors.Is(err, account.ErrEmailTaken) {
				taken = err
				return nil // the token stays used
			}
			return err
		case account.ConfirmEmailChange:
			return mail.Within(tx.db).Insert(ctx, next)
		case account.ChangeEmail:
			err := tx.takeEmail(ctx, l.NewEmail, now)
			if errors.Is(err, account.ErrEmailTaken) {
				taken = err
				return nil // the token stays used
			}
			if err != nil {
				return err
			}
			return tx.setEmail(ctx, l.AccountID, l.NewEmail, account.EmailChanged, l.Notice, l.Email+" → "+l.NewEmail, actor, now)
		default:
			return fmt.Errorf("a link of account %s is for %q", l.AccountID, l.Purpose)
		}
	})
	return id, cmp.Or(err, taken)
}

// verifySignUp verifies the address of an account by the link of a sign-up. An account that nobody has Entered gets the name and the password of the link. One that somebody has entered with another password, while no mail was
// configured, belongs to that person: it loses the address to a new account, as it does by a link to a new password. Without a
// password in the link the account's own stands.
func (tx Tx) verifySignUp(ctx context.Context, owner *account.Account, l *Link, actor account.Actor, now time.Time) (uuid.UUID, error) {
	var entered bool
	if err := tx.db.NewRaw("SELECT "+Entered+" FROM accounts WHERE id = ?", owner.ID).Scan(ctx, &entered); err != nil {
		return uuid.Nil, fmt.Errorf("ask whether anybody has entered account %s: %w", owner.ID, err)
	}
	entry, err := account.NewAuditEntry(owner.ID, actor, account.SignedUp, now)
	if err != nil {
		return uuid.Nil, err
	}
	replaces := l.SignUp.PasswordHash != "" && l.SignUp.PasswordHash != owner.PasswordHash && !owner.EmailVerified()
	switch {
	case entered && replaces:
		if err := tx.takeEmail(ctx, l.Email, now); err != nil {
			return uuid.Nil, err
		}
		return tx.insertSuccessor(ctx, l.Email, l.SignUp, entry)
	case replaces:
		_, err := tx.db.NewRaw("UPDATE accounts SET name = ?, password_hash = $1, updated_at = ? WHERE id = ?", l.SignUp.Name, now, owner.ID).
			Conn(postgres.Bind(tx.db.Tx, l.SignUp.PasswordHash)).Exec(ctx)
		if err != nil {
			return uuid.Nil, fmt.Errorf("set the password of account %s: %w", owner.ID, err)
		}
	}
	if !entered {
		if err := tx.Audit(ctx, entry); err != nil {
			return uuid.Nil, err
		}
	}
	return owner.ID, tx.setEmail(ctx, owner.ID, l.Email, account.EmailVerified, "", l.Email, actor, now)
}

// VerifyEmail records that a person, whose account LockMembers has locked, receives mail at its address.
func (tx Tx) VerifyEmail(ctx context.Context, person *account.Account, actor account.Actor, now time.Time) error {
	return tx.setEmail(ctx, person.ID, person.Email, account.EmailVerified, "", person.Email, actor, now)
}

// setEmail sets an address that the account's owner proved, and ends the account's links, which are for the old address.
func (tx Tx) setEmail(
	ctx context.Context, id uuid.UUID, email string, action account.Action, notice account.Notice, detail string, actor account.Actor, now time.Time,
) error {
	entry, err := account.NewAuditEntry(id, actor, action, now)
	if err != nil {
		return err
	}
	entry.Detail, entry.Notice = detail, notice
	if err := tx.Audit(ctx, entry); err != nil { // before the change, so that the notice goes to the address that the account has had
		return err
	}
	_, err = tx.db.NewRaw("UPDATE accounts SET email = ?, email_verified_at = ?, updated_at = ? WHERE id = ?", email, now, now, id).Exec(ctx)
	if postgres.BrokenConstraint(err) == "accounts_email" {
		return account.ErrEmailTaken
	}
	if err != nil {
		return fmt.Errorf("set the address of account %s: %w", id, err)
	}
	return tx.deleteLinks(ctx, id)
}
