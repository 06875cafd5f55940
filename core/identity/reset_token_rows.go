package identity

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// InsertResetToken stores a token for a new password, identified by its SHA-256, for one use until it expires. The entry is for a
// link that an operator creates. With a nil entry the link is mailed to the owner's address, and using it proves that address.
func (s *Store) InsertResetToken(
	ctx context.Context, owner *account.Account, hash [32]byte, expiresAt time.Time, entry *account.AuditEntry,
) error {
	var mailedTo *string
	if entry == nil {
		mailedTo = &owner.Email
	}
	return s.InTx(ctx, postgres.TurnOf(owner.ID), func(ctx context.Context, tx Tx) error {
		_, err := tx.db.NewRaw("INSERT INTO reset_tokens (hash, account_id, email, expires_at) VALUES ($1, ?, ?, ?)", owner.ID, mailedTo, expiresAt).
			Conn(postgres.Bind(tx.db.Tx, hash[:])).Exec(ctx)
		if err != nil {
			return fmt.Errorf("insert a reset token of account %s: %w", owner.ID, err)
		}
		if entry == nil {
			return nil
		}
		return tx.Audit(ctx, *entry)
	})
}

// AccountByResetToken finds the account whose password a token can reset, or returns account.ErrNotFound.
func (s *Store) AccountByResetToken(ctx context.Context, hash [32]byte, now time.Time) (*account.Account, error) {
	var row accountRow
	err := s.db.NewSelect().Model(&row).Join("JOIN reset_tokens ON reset_tokens.account_id = accounts.id").
		Where("reset_tokens.hash = $1 AND reset_tokens.expires_at > ?", now).Where("accounts.deleted_at IS NULL AND accounts.disabled_at IS NULL").
		Conn(postgres.Bind(s.db.Pool(), hash[:])).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find an account by reset token: %w", err)
	}
	return row.account(), nil
}

// ResetPassword uses a token: it replaces the password of the account in the entry and ends its sessions, links and
// invitations. A mailed link proves the address: an account that cannot keep its address (takeEmail) loses it to a new account with the
// password, and reset is that account's id, otherwise the one in the entry. It returns account.ErrNotFound for a token that was
// used or has expired since, and for an account that may not sign in any more. With unlink it also ends what IdentitiesByResetToken lists.
func (s *Store) ResetPassword(
	ctx context.Context, tokenHash [32]byte, hash string, unlink bool, entry account.AuditEntry,
) (reset uuid.UUID, err error) {
	id, now := entry.AccountID, entry.OccurredAt
	reset = id
	err = s.InTx(ctx, postgres.TurnOf(id), func(ctx context.Context, tx Tx) error {
		owner, err := tx.lockOwner(ctx, id)
		if err != nil {
			return err
		}
		mailedTo, err := tx.useResetToken(ctx, tokenHash, id, now)
		if err != nil {
			return err
		}
		proven := mailedTo == owner.Email
		if proven && !owner.EmailVerified() {
			err := tx.takeEmail(ctx, owner.Email, now)
			if err == nil {
				reset, err = tx.insertSuccessor(ctx, owner.Email, SignUp{PasswordHash: hash}, entry)
				return err
			}
			if !errors.Is(err, account.ErrEmailTaken) {
				return err
			}
		}
		_, err = tx.db.NewRaw(`UPDATE accounts SET password_hash = $1, updated_at = ?0,
			email_verified_at = CASE WHEN ?1 THEN coalesce(email_verified_at, ?0) ELSE email_verified_at END WHERE id = ?2`, now, proven, id).
			Conn(postgres.Bind(tx.db.Tx, hash)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("reset the password of account %s: %w", id, err)
		}
		if err := tx.endAccess(ctx, id); err != nil {
			return err
		}
		if unlink && owner.HasEmail() {
			if err := tx.unlinkAll(ctx, entry); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, entry)
	})
	return reset, err
}

// lockOwner locks and reads an account that may sign in, or returns account.ErrNotFound. Everything that ends its sessions and
// links locks it first.
func (tx Tx) lockOwner(ctx context.Context, id uuid.UUID) (*account.Account, error) {
	var row accountRow
	err := tx.db.NewSelect().Model(&row).Where("id = ? AND deleted_at IS NULL AND disabled_at IS NULL", id).For("UPDATE").Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("lock account %s: %w", id, err)
	}
	return row.account(), nil
}

// useResetToken deletes a token and returns the address to which its link was mailed, empty for none. It returns
// account.ErrNotFound if the token is gone.
func (tx Tx) useResetToken(ctx context.Context, hash [32]byte, id uuid.UUID, now time.Time) (mailedTo string, err error) {
	err = tx.db.NewRaw("DELETE FROM reset_tokens WHERE hash = $1 AND account_id = ? AND expires_at > ? RETURNING coalesce(email, '')", id, now).
		Conn(postgres.Bind(tx.db.Tx, hash[:])).Scan(ctx, &mailedTo)
	if errors.Is(err, sql.ErrNoRows) {
		return "", account.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("use a reset token of account %s: %w", id, err)
	}
	return mailedTo, nil
}

// insertSuccessor creates the account of a person who proved an address that another account has just lost. Its first entry has
// the actor of entry. Without a name it has that of the address.
func (tx Tx) insertSuccessor(ctx context.Context, email string, with SignUp, entry account.AuditEntry) (uuid.UUID, error) {
	a, err := account.NewOfAddress(email, with.PasswordHash, entry.OccurredAt)
	if err != nil {
		return uuid.Nil, err
	}
	a.Name = cmp.Or(with.Name, a.Name)
	if err := tx.insertAccount(ctx, a); err != nil {
		return uuid.Nil, err
	}
	signedUp, err := account.NewAuditEntry(a.ID, entry.Actor, account.SignedUp, entry.OccurredAt)
	if err != nil {
		return uuid.Nil, err
	}
	signedUp.Detail = "by a mailed link; the account that had the address before never proved it"
	return a.ID, tx.Audit(ctx, signedUp)
}

// endAccess ends what somebody who knew the credentials of an account may have left behind: its sessions, its links, and the
// invitations that it made. The caller has locked the account's row, so that none is added before the commit.
func (tx Tx) endAccess(ctx context.Context, id uuid.UUID) error {
	if _, err := tx.db.NewRaw("DELETE FROM sessions WHERE account_id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("end the sessions of account %s: %w", id, err)
	}
	if err := tx.deleteLinks(ctx, id); err != nil {
		return err
	}
	return tx.endAllInvitationsBy(ctx, id)
}

// deleteLinks ends all links of an account: to a new password, and to another or a verified address.
func (tx Tx) deleteLinks(ctx context.Context, id uuid.UUID) error {
	for _, table := range []bun.Ident{"reset_tokens", "link_tokens"} {
		if _, err := tx.db.NewRaw("DELETE FROM ? WHERE account_id = ?", table, id).Exec(ctx); err != nil {
			return fmt.Errorf("end the links of account %s: %w", id, err)
		}
	}
	return nil
}
