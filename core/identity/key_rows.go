package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
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
	LimitBucket        uuid.UUID           `bun:"limit_bucket"`
	RotatedAt          *time.Time          `bun:"rotated_at"`
	Scopes             []string            `bun:"scopes,array"`
	Networks           []string            `bun:"networks,array"`
	CreatedAt          time.Time           `bun:"created_at"`
	UpdatedAt          time.Time           `bun:"updated_at"`

	Account *accountRow `bun:"rel:belongs-to,join:account_id=id"`
}

func (r keyRow) key() (*account.Key, error) {
	scopes, err := apikey.ParseScopes(r.Scopes)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", r.ID, err)
	}
	var networks []netip.Prefix
	for _, text := range r.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("read key %s: %w", r.ID, err)
		}
		networks = append(networks, network)
	}
	return &account.Key{
		ID: r.ID, AccountID: r.AccountID, Name: r.Name, Hash: apikey.Hash(r.Hash), Start: r.Start,
		Environment: r.Environment, Enabled: r.Enabled, ExpiresAt: postgres.UTC(r.ExpiresAt), LastUsedAt: postgres.UTC(r.LastUsedAt),
		Limit: account.Limit{
			Requests: r.LimitRequests, Period: time.Duration(r.LimitPeriodSeconds) * time.Second,
		},
		LimitBucket: r.LimitBucket, RotatedAt: postgres.UTC(r.RotatedAt), Scopes: scopes, Networks: networks,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}, nil
}

func newKeyRow(k *account.Key) keyRow {
	networks := make([]string, len(k.Networks))
	for n, network := range k.Networks {
		networks[n] = network.String()
	}
	return keyRow{
		ID: k.ID, AccountID: k.AccountID, Name: k.Name, Hash: k.Hash[:], Start: k.Start, Environment: k.Environment,
		Enabled: k.Enabled, ExpiresAt: k.ExpiresAt, LastUsedAt: k.LastUsedAt, LimitRequests: k.Limit.Requests,
		LimitPeriodSeconds: int(k.Limit.Period / time.Second), LimitBucket: k.LimitBucket, RotatedAt: k.RotatedAt,
		Scopes: k.Scopes.Names(), Networks: networks, CreatedAt: k.CreatedAt, UpdatedAt: k.UpdatedAt,
	}
}

// activeKey is the condition for the keys of an account: not deleted, and not rotated with the grace period over.
const activeKey = "deleted_at IS NULL AND (rotated_at IS NULL OR expires_at > now())"

// InsertKey stores a new key. It returns account.ErrTooMany if the account has account.MaxKeys of them. The account's row is
// locked, so that no other key is added while they are counted.
func (tx Tx) InsertKey(ctx context.Context, by access.Rights, k *account.Key) error {
	if err := by.Cover(tx.Tx, k.AccountID); err != nil {
		return err
	}
	if err := tx.LockAccount(ctx, k.AccountID); err != nil {
		return err
	}
	if err := checkKeyRoom(ctx, tx.db, k.AccountID); err != nil {
		return err
	}
	row := newKeyRow(k)
	row.Hash = nil
	_, err := tx.db.NewInsert().Model(&row).Value("hash", "$1").Returning("NULL").Conn(postgres.Bind(tx.db.Tx, k.Hash[:])).Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert key %s: %w", k.ID, err)
	}
	return nil
}

// CheckKeyRoom returns account.ErrTooMany for an account that has account.MaxKeys keys, without a wait for its lock.
func (s *Store) CheckKeyRoom(ctx context.Context, accountID uuid.UUID) error {
	return checkKeyRoom(ctx, s.db, accountID)
}

// checkKeyRoom is conclusive under the lock of the account.
func checkKeyRoom(ctx context.Context, db bun.IDB, accountID uuid.UUID) error {
	count, err := db.NewSelect().Model((*keyRow)(nil)).Where("account_id = ?", accountID).Where(activeKey).Count(ctx)
	if err != nil {
		return fmt.Errorf("count the keys of account %s: %w", accountID, err)
	}
	if count >= account.MaxKeys {
		return account.ErrTooMany
	}
	return nil
}

// Keys lists an account's keys, newest first.
func (s *Store) Keys(ctx context.Context, accountID uuid.UUID) ([]*account.Key, error) {
	var rows []keyRow
	err := s.db.NewSelect().Model(&rows).Where("account_id = ?", accountID).Where(activeKey).Order("id DESC").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the keys of account %s: %w", accountID, err)
	}
	keys := make([]*account.Key, len(rows))
	for i, row := range rows {
		if keys[i], err = row.key(); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// Key finds one of an account's keys, or returns account.ErrNotFound.
func (s *Store) Key(ctx context.Context, accountID, keyID uuid.UUID) (*account.Key, error) {
	return findKey(ctx, s.db.NewSelect(), accountID, keyID)
}

func findKey(ctx context.Context, query *bun.SelectQuery, accountID, keyID uuid.UUID) (*account.Key, error) {
	var row keyRow
	err := query.Model(&row).Where("id = ? AND account_id = ?", keyID, accountID).Where(activeKey).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find key %s: %w", keyID, err)
	}
	return row.key()
}

// LockKey finds one of an account's keys and locks it until the transaction ends, so that no concurrent change is lost. It returns
// account.ErrNotFound for a key the account does not have.
func (tx Tx) LockKey(ctx context.Context, accountID, keyID uuid.UUID) (*account.Key, error) {
	return findKey(ctx, tx.db.NewSelect().For("UPDATE"), accountID, keyID)
}

// UpdateKey stores the name, the state, the expiry, the rotation, the scopes and the networks of a key that LockKey has locked.
func (tx Tx) UpdateKey(ctx context.Context, by access.Rights, k *account.Key) error {
	if err := by.Cover(tx.Tx, k.AccountID); err != nil {
		return err
	}
	row := newKeyRow(k)
	_, err := tx.db.NewUpdate().Model(&row).WherePK().
		Column("name", "enabled", "expires_at", "rotated_at", "scopes", "networks", "updated_at").Exec(ctx)
	if err != nil {
		return fmt.Errorf("update key %s: %w", k.ID, err)
	}
	return nil
}

// DeleteKey marks a key that LockKey has locked as deleted. The key is rejected from then on.
func (tx Tx) DeleteKey(ctx context.Context, by access.Rights, k *account.Key, now time.Time) error {
	if err := by.Cover(tx.Tx, k.AccountID); err != nil {
		return err
	}
	_, err := tx.db.NewUpdate().Model((*keyRow)(nil)).Set("deleted_at = ?", now).Set("updated_at = ?", now).Where("id = ?", k.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete key %s: %w", k.ID, err)
	}
	return nil
}

// ReplaceKey stores the rotation of a key that LockKey has locked. A key without RotatedAt is deleted at once; otherwise it is
// stored for its grace period. It returns account.ErrTooMany as InsertKey does.
func (tx Tx) ReplaceKey(ctx context.Context, by access.Rights, old, next *account.Key) (err error) {
	if old.RotatedAt == nil {
		err = tx.DeleteKey(ctx, by, old, next.CreatedAt)
	} else {
		err = tx.UpdateKey(ctx, by, old)
	}
	if err != nil {
		return err
	}
	return tx.InsertKey(ctx, by, next)
}

// UsableKey finds the key with this hash if it may be used now: enabled, not expired, not deleted, its account neither
// disabled nor deleted. Otherwise it returns account.ErrNotFound. The limit and the origins are the account's.
func (s *Store) UsableKey(ctx context.Context, hash apikey.Hash, now time.Time) (key *account.Key, of account.KeyRules, err error) {
	var row keyRow
	err = s.db.NewSelect().Model(&row).
		Relation("Account", func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Column("limit_requests", "limit_period_seconds", "origins")
		}).
		Where("api_keys.hash = $1 AND api_keys.enabled AND api_keys.deleted_at IS NULL").
		Where("(api_keys.expires_at IS NULL OR api_keys.expires_at > ?)", now).
		Where(`"account".disabled_at IS NULL AND "account".deleted_at IS NULL`).Conn(postgres.Bind(s.db.Pool(), hash[:])).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.KeyRules{}, account.ErrNotFound
	}
	if err != nil {
		return nil, account.KeyRules{}, fmt.Errorf("find a key by its hash: %w", err)
	}
	key, err = row.key()
	return key, account.KeyRules{Limit: row.Account.limit(), Origins: row.Account.origins()}, err
}
