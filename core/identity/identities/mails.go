package identities

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
)

// Mail is a queued mail without text: the message is composed when it is sent, so that the database contains no links.
type Mail struct {
	Kind      account.MailKind
	Recipient string
	// AccountID is the account that requested the mail, uuid.Nil for mails to the account that has the address, if any.
	AccountID uuid.UUID
	// NewEmail is the account's new address, in a mail to the current one.
	NewEmail string
	// Callback is the path on this site to which the link finally leads, empty for the console.
	Callback string
	// InvitationID is the invitation that the mail is about.
	InvitationID uuid.UUID
	// WebhookID is the webhook that the mail is about.
	WebhookID uuid.UUID
	// AuditEntryID is the entry of the account's audit log that the mail is about.
	AuditEntryID uuid.UUID
	// SignUp is what the mail's link gives to the account, of a mail about a sign-up.
	SignUp SignUp
}

// SignUp is the name and the password of one sign-up. They stand once the link that was mailed for it is used, so that nobody else's
// sign-up with the address replaces them, or is replaced by them before.
type SignUp struct {
	Name         string
	PasswordHash string
}

// QueuedMail is a row of the outbox.
type QueuedMail struct {
	Mail
	ID uuid.UUID
	// Attempts includes this one.
	Attempts int
	// Age is the time since the mail was requested.
	Age time.Duration
}

// InsertMail puts a mail into the outbox. It does the same work whether or not an account has the address.
func (s *Store) InsertMail(ctx context.Context, m Mail) error { return insertMail(ctx, s.db, m) }

// InsertMailWithEntry is InsertMail with an audit entry for the request.
func (tx Tx) InsertMailWithEntry(ctx context.Context, by Rights, m Mail, entry account.AuditEntry) error {
	if err := by.cover(tx, entry.AccountID); err != nil {
		return err
	}
	if err := insertMail(ctx, tx.db, m); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}

// InsertMail is Store.InsertMail in a transaction.
func (tx Tx) InsertMail(ctx context.Context, m Mail) error { return insertMail(ctx, tx.db, m) }

func insertMail(ctx context.Context, db bun.IDB, m Mail) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = db.NewRaw(`INSERT INTO mails (id, kind, recipient, account_id, new_email, callback, invitation_id, webhook_id, attempts, next_attempt_at, created_at)
		VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, 0, clock_timestamp(), clock_timestamp())`,
		id, m.Kind, m.Recipient, nullID(m.AccountID), m.NewEmail, m.Callback, nullID(m.InvitationID), nullID(m.WebhookID)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("queue a mail: %w", err)
	}
	return nil
}

// nullID is NULL for uuid.Nil.
func nullID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// LeaseMail leases the mail that has been due for the longest time, or returns nil. After the lease it is due again, so that
// another sender sends it if this one has died. Kinds of a later version are left to its cores.
func (s *Store) LeaseMail(ctx context.Context, lease time.Duration) (*QueuedMail, error) {
	var row struct {
		ID           uuid.UUID
		Kind         account.MailKind
		Recipient    string
		AccountID    uuid.UUID
		NewEmail     string
		Callback     string
		InvitationID uuid.UUID
		WebhookID    uuid.UUID
		AuditEntryID uuid.UUID
		Name         string
		PasswordHash string
		Attempts     int
		Age          float64 // seconds
	}
	err := s.db.NewRaw(`UPDATE mails SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + ?0 * interval '1 millisecond'
		WHERE id = (SELECT id FROM mails WHERE next_attempt_at <= clock_timestamp() AND kind IN (?1)
			ORDER BY next_attempt_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING id, kind, recipient, coalesce(account_id, '00000000-0000-0000-0000-000000000000') AS account_id,
			coalesce(new_email, '') AS new_email, coalesce(callback, '') AS callback,
			coalesce(invitation_id, '00000000-0000-0000-0000-000000000000') AS invitation_id,
			coalesce(webhook_id, '00000000-0000-0000-0000-000000000000') AS webhook_id,
			coalesce(audit_entry_id, '00000000-0000-0000-0000-000000000000') AS audit_entry_id,
			coalesce(name, '') AS name, coalesce(password_hash, '') AS password_hash, attempts, extract(epoch FROM clock_timestamp() - created_at)::float8 AS age`,
		lease.Milliseconds(), bun.List(account.MailKinds)).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lease a mail: %w", err)
	}
	age := time.Duration(row.Age * float64(time.Second))
	return &QueuedMail{
		Mail: Mail{
			Kind: row.Kind, Recipient: row.Recipient, AccountID: row.AccountID, NewEmail: row.NewEmail, Callback: row.Callback,
			InvitationID: row.InvitationID, WebhookID: row.WebhookID, AuditEntryID: row.AuditEntryID,
			SignUp: SignUp{Name: row.Name, PasswordHash: row.PasswordHash},
		},
		ID: row.ID, Attempts: row.Attempts, Age: age,
	}, nil
}

// DeleteMail removes a mail that needs no further attempt.
func (s *Store) DeleteMail(ctx context.Context, id uuid.UUID) error {
	if _, err := s.db.NewRaw("DELETE FROM mails WHERE id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("delete mail %s: %w", id, err)
	}
	return nil
}

// RetryMail makes a leased mail due after a pause. It changes nothing if the lease has ended and another sender has the mail.
func (s *Store) RetryMail(ctx context.Context, leased *QueuedMail, after time.Duration) error {
	_, err := s.db.NewRaw(`UPDATE mails SET next_attempt_at = clock_timestamp() + ? * interval '1 millisecond' WHERE id = ? AND attempts = ?`,
		after.Milliseconds(), leased.ID, leased.Attempts).Exec(ctx)
	if err != nil {
		return fmt.Errorf("retry mail %s: %w", leased.ID, err)
	}
	return nil
}

// MailBacklogAge is how long ago the oldest mail was requested, 0 if there is none.
func (s *Store) MailBacklogAge(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := s.db.NewRaw(`SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 FROM mails`).Scan(ctx, &seconds)
	if err != nil {
		return 0, fmt.Errorf("read the backlog of mail: %w", err)
	}
	return max(0, time.Duration(seconds*float64(time.Second))), nil
}
