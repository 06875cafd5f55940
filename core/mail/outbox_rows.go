package mail

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// Store has the rows of the outbox. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db} }

// Tx is a transaction that queues mails.
type Tx struct{ db bun.Tx }

// Within queues mails in a transaction: they are sent if it commits.
func Within(tx bun.Tx) Tx { return Tx{tx} }

// Insert puts a mail into the outbox. It does the same work whether or not an account has the address.
func (s *Store) Insert(ctx context.Context, d Draft) error {
	return insert(ctx, s.db.NewRaw, s.db.Pool(), d)
}

// Insert is Store.Insert in the transaction.
func (tx Tx) Insert(ctx context.Context, d Draft) error {
	return insert(ctx, tx.db.NewRaw, tx.db.Tx, d)
}

func insert(ctx context.Context, query func(string, ...any) *bun.RawQuery, conn bun.IConn, d Draft) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = query(`INSERT INTO mails (id, kind, recipient, account_id, new_email, callback, invitation_id, webhook_id, audit_entry_id, name, password_hash,
			attempts, next_attempt_at, created_at)
		VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?, nullif(?, ''), nullif($1::text, ''), 0, clock_timestamp(), clock_timestamp())`,
		id, d.Kind, d.Recipient, postgres.NullID(d.AccountID), d.NewEmail, d.Callback, postgres.NullID(d.InvitationID), postgres.NullID(d.WebhookID), postgres.NullID(d.AuditEntryID), d.Name).
		Conn(postgres.Bind(conn, d.PasswordHash)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("queue a mail: %w", err)
	}
	return nil
}

// Lease leases the mail of one of some kinds that has been due for the longest time, or returns nil. After the lease it is due again, so
// that another sender sends it if this one has died. Kinds of a later version are left to its cores.
func (s *Store) Lease(ctx context.Context, kinds []Kind, lease time.Duration) (*Queued, error) {
	var row struct {
		ID           uuid.UUID
		Kind         Kind
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
		lease.Milliseconds(), bun.List(kinds)).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lease a mail: %w", err)
	}
	age := time.Duration(row.Age * float64(time.Second))
	return &Queued{
		Draft: Draft{
			Kind: row.Kind, Recipient: row.Recipient, AccountID: row.AccountID, NewEmail: row.NewEmail, Callback: row.Callback,
			InvitationID: row.InvitationID, WebhookID: row.WebhookID, AuditEntryID: row.AuditEntryID,
			Name: row.Name, PasswordHash: row.PasswordHash,
		},
		ID: row.ID, Attempts: row.Attempts, Age: age,
	}, nil
}

// Delete removes a mail that needs no further attempt.
func (s *Store) Delete(ctx context.Context, id uuid.UUID) error {
	if _, err := s.db.NewRaw("DELETE FROM mails WHERE id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("delete mail %s: %w", id, err)
	}
	return nil
}

// Retry makes a leased mail due after a pause. It changes nothing if the lease has ended and another sender has the mail.
func (s *Store) Retry(ctx context.Context, leased *Queued, after time.Duration) error {
	_, err := s.db.NewRaw(`UPDATE mails SET next_attempt_at = clock_timestamp() + ? * interval '1 millisecond' WHERE id = ? AND attempts = ?`,
		after.Milliseconds(), leased.ID, leased.Attempts).Exec(ctx)
	if err != nil {
		return fmt.Errorf("retry mail %s: %w", leased.ID, err)
	}
	return nil
}

// BacklogAge is how long ago the oldest mail was requested, 0 if there is none.
func (s *Store) BacklogAge(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := s.db.NewRaw(`SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 FROM mails`).Scan(ctx, &seconds)
	if err != nil {
		return 0, fmt.Errorf("read the backlog of mail: %w", err)
	}
	return max(0, time.Duration(seconds*float64(time.Second))), nil
}
