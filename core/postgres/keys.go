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
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

type keyRow struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_keys"`

	ID                 uuid.UUID           `bun:"id,pk"`
	AccountID          uuid.UUID           `bun:"account_id"`
	Name               string              `bun:"name"`
	Hash               []byte              `bun:"hash"`
	Start              string              `bun:"start"`
	Environment        network.Environment `bun:"environment"`
	Enabled            bool                `bun:"enabled"`
	ExpiresAt          *time.Time          `bun:"expires_at"`
	LastUsedAt         *time.Time          `bun:"last_used_at"`
	LimitRequests      int                 `bun:"limit_requests"`
	LimitPeriodSeconds int                 `bun:"limit_period_seconds"`
	CreatedAt          time.Time           `bun:"created_at"`
	UpdatedAt          time.Time           `bun:"updated_at"`
}

func (r keyRow) key() *account.Key {
	return &account.Key{
		ID: r.ID, AccountID: r.AccountID, Name: r.Name, Hash: apikey.Hash(r.Hash), Start: r.Start,
		Environment: r.Environment, Enabled: r.Enabled, ExpiresAt: utc(r.ExpiresAt), LastUsedAt: utc(r.LastUsedAt),
		Limit: account.Limit{
			Requests: r.LimitRequests, Period: time.Duration(r.LimitPeriodSeconds) * time.Second,
		},
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// InsertKey stores a new key. It returns account.ErrTooMany if the account has account.MaxKeys of them; the account's
// row is locked while they are counted, so that two requests cannot both be the last.
func (s *Store) InsertKey(ctx context.Context, k *account.Key) error {
	row := keyRow{
		ID: k.ID, AccountID: k.AccountID, Name: k.Name, Hash: k.Hash[:], Start: k.Start, Environment: k.Environment,
		Enabled: k.Enabled, ExpiresAt: k.ExpiresAt, LimitRequests: k.Limit.Requests,
		LimitPeriodSeconds: int(k.Limit.Period / time.Second), CreatedAt: k.CreatedAt, UpdatedAt: k.UpdatedAt,
	}
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewRaw("SELECT FROM accounts WHERE id = ? FOR NO KEY UPDATE", k.AccountID).Exec(ctx); err != nil {
			return fmt.Errorf("lock account %s: %w", k.AccountID, err)
		}
		count, err := tx.NewSelect().Model((*keyRow)(nil)).
			Where("account_id = ? AND deleted_at IS NULL", k.AccountID).Count(ctx)
		if err != nil {
			return fmt.Errorf("count the keys of account %s: %w", k.AccountID, err)
		}
		if count >= account.MaxKeys {
			return account.ErrTooMany
		}
		if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
			return fmt.Errorf("insert key %s: %w", k.ID, err)
		}
		return nil
	})
}

// Keys lists an account's keys, newest first.
func (s *Store) Keys(ctx context.Context, accountID uuid.UUID) ([]*account.Key, error) {
	var rows []keyRow
	err := s.db.NewSelect().Model(&rows).Where("account_id = ? AND deleted_at IS NULL", accountID).
		Order("id DESC").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the keys of account %s: %w", accountID, err)
	}
	keys := make([]*account.Key, len(rows))
	for i, row := range rows {
		keys[i] = row.key()
	}
	return keys, nil
}

// DeleteKey refuses a key for good. It returns account.ErrNotFound for a key the account does not have.
func (s *Store) DeleteKey(ctx context.Context, accountID, keyID uuid.UUID, now time.Time) error {
	result, err := s.db.NewUpdate().Model((*keyRow)(nil)).Set("deleted_at = ?", now).Set("updated_at = ?", now).
		Where("id = ? AND account_id = ? AND deleted_at IS NULL", keyID, accountID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete key %s: %w", keyID, err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(err, account.ErrNotFound)
	}
	return nil
}

// UpdateKey changes an account's key by change, under a lock so that no other change is lost. It returns what change
// returns, and account.ErrNotFound for a key the account does not have.
func (s *Store) UpdateKey(ctx context.Context, accountID, keyID uuid.UUID, change func(*account.Key) error) (*account.Key, error) {
	var key *account.Key
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		var row keyRow
		err := tx.NewSelect().Model(&row).
			Where("id = ? AND account_id = ? AND deleted_at IS NULL", keyID, accountID).For("UPDATE").Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return account.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("read key %s: %w", keyID, err)
		}
		key = row.key()
		if err := change(key); err != nil {
			return err
		}
		row.Name, row.Enabled, row.ExpiresAt, row.UpdatedAt = key.Name, key.Enabled, key.ExpiresAt, key.UpdatedAt
		if _, err := tx.NewUpdate().Model(&row).Column("name", "enabled", "expires_at", "updated_at").WherePK().Exec(ctx); err != nil {
			return fmt.Errorf("update key %s: %w", keyID, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

// UsableKey finds the key with this hash if it may be used now: enabled, not expired, not deleted, its account neither
// disabled nor deleted. Otherwise it returns account.ErrNotFound.
func (s *Store) UsableKey(ctx context.Context, hash apikey.Hash, now time.Time) (*account.Key, error) {
	var row keyRow
	err := s.db.NewSelect().Model(&row).
		Join("JOIN accounts ON accounts.id = api_keys.account_id").
		Where("api_keys.hash = ? AND api_keys.enabled AND api_keys.deleted_at IS NULL", hash[:]).
		Where("(api_keys.expires_at IS NULL OR api_keys.expires_at > ?)", now).
		Where("accounts.disabled_at IS NULL AND accounts.deleted_at IS NULL").Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find a key by its hash: %w", err)
	}
	return row.key(), nil
}
