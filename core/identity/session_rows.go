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

type sessionRow struct {
	bun.BaseModel `bun:"table:sessions,alias:sessions"`

	ID        uuid.UUID `bun:"id,pk"`
	TokenHash []byte    `bun:"token_hash"`
	AccountID uuid.UUID `bun:"account_id"`
	IPAddress string    `bun:"ip_address"`
	UserAgent string    `bun:"user_agent"`
	ExpiresAt time.Time `bun:"expires_at"`
	CreatedAt time.Time `bun:"created_at"`
	UpdatedAt time.Time `bun:"updated_at"`
	ActingID  uuid.UUID `bun:"acting_account_id,nullzero"`
	// ConfirmedAt is null in rows from before the column.
	ConfirmedAt *time.Time     `bun:"confirmed_at"`
	Factor      account.Factor `bun:"factor,nullzero"`
	HasPasskey  bool           `bun:"has_passkey,scanonly"`

	Account *accountRow `bun:"rel:belongs-to,join:account_id=id"`
	// Acting and Member are nil if the session acts on the account that signed in.
	Acting *accountRow `bun:"rel:belongs-to,join:acting_account_id=id"`
	Member *memberRow  `bun:"rel:belongs-to,join:acting_account_id=account_id,join:account_id=person_id"`
}

func (r sessionRow) session() *account.Session {
	session := &account.Session{
		ID: r.ID, AccountID: r.AccountID, TokenHash: [32]byte(r.TokenHash), IPAddress: r.IPAddress, UserAgent: r.UserAgent,
		ExpiresAt: r.ExpiresAt.UTC(), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		ConfirmedAt: r.CreatedAt.UTC(), Factor: r.Factor, HasPasskey: r.HasPasskey,
	}
	if r.ConfirmedAt != nil {
		session.ConfirmedAt = r.ConfirmedAt.UTC()
	}
	if r.Member != nil && r.Acting != nil {
		session.Acting = &account.Membership{Account: r.Acting.account(), Role: r.Member.Role}
	}
	return session
}

// InsertSession stores a new session of the owner, as read when the sign-in was checked. It returns account.ErrNotFound for an
// account that may no longer sign in or has another password since. The account's row is locked, so a concurrent change either
// ends the new session or prevents it.
func (s *Store) InsertSession(
	ctx context.Context, session *account.Session, owner *account.Account, entry account.AuditEntry,
) error {
	return s.InTx(ctx, postgres.TurnOf(owner.ID), func(ctx context.Context, tx Tx) error { return tx.StartSession(ctx, session, owner, entry) })
}

// InsertIdentitySession is InsertSession for an owner who was found by an identity. It also returns account.ErrNotFound if the
// identity was unlinked since.
func (s *Store) InsertIdentitySession(
	ctx context.Context, session *account.Session, owner *account.Account, identity account.Identity, entry account.AuditEntry,
) error {
	return s.InTx(ctx, postgres.TurnOf(owner.ID), func(ctx context.Context, tx Tx) error {
		if err := tx.StartSession(ctx, session, owner, entry); err != nil {
			return err
		}
		// The account's row is locked, so no unlinking is in progress.
		owned, err := tx.ownsIdentity(ctx, owner.ID, identity)
		if err == nil && !owned {
			return account.ErrNotFound
		}
		return err
	})
}

// StartSession is Store.InsertSession in the transaction.
func (tx Tx) StartSession(ctx context.Context, session *account.Session, owner *account.Account, entry account.AuditEntry) error {
	var id uuid.UUID
	err := tx.db.NewRaw(`SELECT id FROM accounts
		WHERE id = ? AND password_hash = $1 AND deleted_at IS NULL AND disabled_at IS NULL FOR NO KEY UPDATE`, owner.ID).
		Conn(postgres.Bind(tx.db.Tx, owner.PasswordHash)).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return account.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("lock account %s: %w", session.AccountID, err)
	}
	if err := tx.insertSession(ctx, session); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}

func (tx Tx) insertSession(ctx context.Context, session *account.Session) error {
	row := sessionRow{
		ID: session.ID, AccountID: session.AccountID,
		IPAddress: session.IPAddress, UserAgent: session.UserAgent,
		ExpiresAt: session.ExpiresAt, CreatedAt: session.CreatedAt, UpdatedAt: session.UpdatedAt,
		ConfirmedAt: &session.ConfirmedAt, Factor: session.Factor,
	}
	_, err := tx.db.NewInsert().Model(&row).Value("token_hash", "$1").Returning("NULL").Conn(postgres.Bind(tx.db.Tx, session.TokenHash[:])).Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert a session of account %s: %w", session.AccountID, err)
	}
	if err := tx.enter(ctx, session); err != nil {
		return err
	}
	return tx.endOldSessions(ctx, session)
}

// Entered is the condition for an account that somebody has entered. The versions before entered_at leave sessions, and what is made in
// them.
const Entered = `(entered_at IS NOT NULL OR EXISTS (SELECT FROM sessions WHERE sessions.account_id = accounts.id)
	OR EXISTS (SELECT FROM api_keys WHERE api_keys.account_id = accounts.id) OR EXISTS (SELECT FROM identities WHERE identities.account_id = accounts.id))`

// enter records the first session of an account, whose row is locked.
func (tx Tx) enter(ctx context.Context, session *account.Session) error {
	_, err := tx.db.NewRaw("UPDATE accounts SET entered_at = ? WHERE id = ? AND entered_at IS NULL", session.CreatedAt, session.AccountID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("enter account %s: %w", session.AccountID, err)
	}
	return nil
}

// oldSessionBatch bounds the sessions that one sign-in ends, for accounts from before there was a maximum.
const oldSessionBatch = 1_000

// endOldSessions ends the sessions of a person that are older than the newest account.MaxSessions. It skips sessions that a
// concurrent sign-in ends, which prevents deadlocks; sign-ins of the same instant may leave one more each, until the next one.
func (tx Tx) endOldSessions(ctx context.Context, newest *account.Session) error {
	_, err := tx.db.NewRaw(`DELETE FROM sessions WHERE id = ANY (ARRAY(
		SELECT id FROM sessions WHERE account_id = ?0 AND id <> ?1
			AND id <= (SELECT id FROM sessions WHERE account_id = ?0 AND id <> ?1 ORDER BY id DESC OFFSET ?2 LIMIT 1)
		ORDER BY id LIMIT ?3 FOR UPDATE SKIP LOCKED))`, newest.AccountID, newest.ID, account.MaxSessions-1, oldSessionBatch).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end the oldest sessions of account %s: %w", newest.AccountID, err)
	}
	return nil
}

// liveActing is the condition for a session whose account to act on can be acted on by its person. Any other session has ended:
// if it went on with the person's own account, what its browser sends next would be done to the wrong one.
const liveActing = `(sessions.acting_account_id IS NULL OR "member".account_id IS NOT NULL
	AND "acting".deleted_at IS NULL AND "acting".disabled_at IS NULL)`

// hasPasskey is whether the person of a session has a passkey.
const hasPasskey = `EXISTS (SELECT FROM passkeys WHERE passkeys.person_id = sessions.account_id)`

// Session finds a live session, its person and the account that it acts on by the hash of its token, or returns account.ErrNotFound.
func (s *Store) Session(ctx context.Context, tokenHash [32]byte, now time.Time) (*account.Session, *account.Account, error) {
	var row sessionRow
	err := s.db.NewSelect().Model(&row).ColumnExpr("?TableColumns").ColumnExpr(hasPasskey+" AS has_passkey").
		Relation("Account").Relation("Acting").Relation("Member").
		Where("sessions.token_hash = $1 AND sessions.expires_at > ?", now).
		Where(`"account".deleted_at IS NULL AND "account".disabled_at IS NULL`).Where(liveActing).Conn(postgres.Bind(s.db.Pool(), tokenHash[:])).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, account.ErrNotFound
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find a session: %w", err)
	}
	return row.session(), row.Account.account(), nil
}

// Sessions lists an account's live sessions, newest first, account.MaxSessions at most.
func (s *Store) Sessions(ctx context.Context, accountID uuid.UUID, now time.Time) ([]*account.Session, error) {
	var rows []sessionRow
	err := s.db.NewSelect().Model(&rows).Relation("Acting").Relation("Member").
		Where("sessions.account_id = ? AND sessions.expires_at > ?", accountID, now).Where(liveActing).
		Order("sessions.id DESC").Limit(account.MaxSessions).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the sessions of account %s: %w", accountID, err)
	}
	sessions := make([]*account.Session, len(rows))
	for i, row := range rows {
		sessions[i] = row.session()
	}
	return sessions, nil
}

// DeleteSession ends a session and records what entry returns for its person, of account.NewHourlyEntry; one that has ended already is
// no error.
func (s *Store) DeleteSession(ctx context.Context, tokenHash [32]byte, entry func(person uuid.UUID) account.AuditEntry) error {
	return s.InTx(ctx, postgres.TurnOf(uuid.UUID(tokenHash[:16])), func(ctx context.Context, tx Tx) error {
		var person uuid.UUID
		err := tx.db.NewRaw("DELETE FROM sessions WHERE token_hash = $1 RETURNING account_id").Conn(postgres.Bind(tx.db.Tx, tokenHash[:])).Scan(ctx, &person)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete a session: %w", err)
		}
		return tx.Audit(ctx, entry(person))
	})
}

// DeleteSessionByID ends one of an account's sessions. It returns account.ErrNotFound for one the account does not have.
func (tx Tx) DeleteSessionByID(ctx context.Context, by access.Rights, accountID, sessionID uuid.UUID, entry account.AuditEntry) error {
	ended, err := tx.deleteSessions(ctx, by, entry, "account_id = ? AND id = ?", accountID, sessionID)
	if err == nil && ended == 0 {
		return account.ErrNotFound
	}
	return err
}

// DeleteSessionsExcept ends an account's live sessions except the one to keep, uuid.Nil for none, and returns their number. If
// there was none, the entry is not written.
func (tx Tx) DeleteSessionsExcept(ctx context.Context, by access.Rights, accountID, keep uuid.UUID, entry account.AuditEntry) (int, error) {
	return tx.deleteSessions(ctx, by, entry, "account_id = ? AND id <> ? AND expires_at > ?", accountID, keep, entry.OccurredAt)
}

// deleteSessionsOn ends all sessions that act on an account of which the person is a member, except the one to keep, uuid.Nil for
// none, which then acts on the person's own account.
func (tx Tx) deleteSessionsOn(ctx context.Context, id, keep uuid.UUID) error {
	for _, statement := range []string{
		"UPDATE sessions SET acting_account_id = NULL WHERE id = ?1 AND acting_account_id = ?0",
		"DELETE FROM sessions WHERE acting_account_id = ?0",
	} {
		if _, err := tx.db.NewRaw(statement, id, keep).Exec(ctx); err != nil {
			return fmt.Errorf("end the sessions that act on account %s: %w", id, err)
		}
	}
	return nil
}

func (tx Tx) deleteSessions(ctx context.Context, by access.Rights, entry account.AuditEntry, where string, args ...any) (int, error) {
	if err := by.Cover(tx.Tx, entry.AccountID); err != nil {
		return 0, err
	}
	ended, err := postgres.RowsChanged(tx.db.NewDelete().Model((*sessionRow)(nil)).Where(where, args...).Exec(ctx))
	if err != nil {
		return 0, fmt.Errorf("end sessions of account %s: %w", entry.AccountID, err)
	}
	if ended == 0 {
		return 0, nil
	}
	return int(ended), tx.Audit(ctx, entry)
}
