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

// InsertAccount stores a new account. It returns account.ErrEmailTaken if another holds the address.
func (s *Store) InsertAccount(ctx context.Context, a *account.Account) error {
	row := accountRow{
		ID: a.ID, Name: a.Name, Email: a.Email, PasswordHash: a.PasswordHash,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
	_, err := s.db.NewInsert().Model(&row).Exec(ctx)
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

// DisableAccount refuses an account's keys and sign-ins until it is enabled again. It returns account.ErrNotFound for
// an address no account has.
func (s *Store) DisableAccount(ctx context.Context, email string, now time.Time) error {
	return s.endAccount(ctx, "disable", email, "disabled_at = ?", now)
}

// EnableAccount takes DisableAccount back.
func (s *Store) EnableAccount(ctx context.Context, email string) error {
	return s.changeAccount(ctx, s.db, "enable", email, "disabled_at = NULL")
}

// DeleteAccount ends an account for good: its sessions end, its keys are refused, its intents stay for audit.
func (s *Store) DeleteAccount(ctx context.Context, email string, now time.Time) error {
	return s.endAccount(ctx, "delete", email, "deleted_at = ?", now)
}

func (s *Store) endAccount(ctx context.Context, verb, email, set string, now time.Time) error {
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewRaw(`DELETE FROM sessions USING accounts
			WHERE accounts.id = sessions.account_id AND accounts.email = ? AND accounts.deleted_at IS NULL`, email).Exec(ctx)
		if err != nil {
			return fmt.Errorf("end the sessions of an account: %w", err)
		}
		return s.changeAccount(ctx, tx, verb, email, set, now)
	})
}

func (s *Store) changeAccount(ctx context.Context, db bun.IDB, verb, email, set string, args ...any) error {
	result, err := db.NewUpdate().Model((*accountRow)(nil)).Set(set, args...).Set("updated_at = now()").
		Where("email = ? AND deleted_at IS NULL", email).Exec(ctx)
	if err != nil {
		return fmt.Errorf("%s an account: %w", verb, err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(err, account.ErrNotFound)
	}
	return nil
}

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

	Account *accountRow `bun:"rel:belongs-to,join:account_id=id"`
}

// InsertSession stores a new session.
func (s *Store) InsertSession(ctx context.Context, session *account.Session) error {
	row := sessionRow{
		ID: session.ID, TokenHash: session.TokenHash[:], AccountID: session.AccountID,
		IPAddress: session.IPAddress, UserAgent: session.UserAgent,
		ExpiresAt: session.ExpiresAt, CreatedAt: session.CreatedAt, UpdatedAt: session.UpdatedAt,
	}
	if _, err := s.db.NewInsert().Model(&row).Exec(ctx); err != nil {
		return fmt.Errorf("insert a session of account %s: %w", session.AccountID, err)
	}
	return nil
}

// Session finds a live session and its account by the hash of its token, or returns account.ErrNotFound.
func (s *Store) Session(ctx context.Context, tokenHash [32]byte, now time.Time) (*account.Session, *account.Account, error) {
	var row sessionRow
	err := s.db.NewSelect().Model(&row).Relation("Account").
		Where("sessions.token_hash = ? AND sessions.expires_at > ?", tokenHash[:], now).
		Where(`"account".deleted_at IS NULL AND "account".disabled_at IS NULL`).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, account.ErrNotFound
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find a session: %w", err)
	}
	return &account.Session{
		ID: row.ID, AccountID: row.AccountID, TokenHash: tokenHash,
		IPAddress: row.IPAddress, UserAgent: row.UserAgent,
		ExpiresAt: row.ExpiresAt.UTC(), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}, row.Account.account(), nil
}

// DeleteSession ends a session; one that is gone already is fine.
func (s *Store) DeleteSession(ctx context.Context, tokenHash [32]byte) error {
	if _, err := s.db.NewDelete().Model((*sessionRow)(nil)).Where("token_hash = ?", tokenHash[:]).Exec(ctx); err != nil {
		return fmt.Errorf("delete a session: %w", err)
	}
	return nil
}
