package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// ListedAccount is an account as its operator sees it.
type ListedAccount struct {
	ID                         uuid.UUID
	Name, Email                string
	Shared, Verified, Disabled bool
	// LiveKeys and TestKeys are its keys that are not deleted.
	LiveKeys, TestKeys int
	// Passkeys are those of the person.
	Passkeys  int
	Limit     account.Limit
	CreatedAt time.Time
}

// ListAccounts returns up to limit accounts that have not ended, in the order of their ids, which is that of their creation, from the one
// after an id on.
func (s *Store) ListAccounts(ctx context.Context, after uuid.UUID, limit int) ([]ListedAccount, error) {
	var rows []struct {
		accountRow
		LiveKeys int `bun:"live_keys"`
		TestKeys int `bun:"test_keys"`
		Passkeys int `bun:"passkeys"`
	}
	err := s.db.NewRaw(`SELECT accounts.*, keys.live_keys, keys.test_keys,
			(SELECT count(*) FROM passkeys WHERE person_id = accounts.id) AS passkeys
		FROM (SELECT id, name, email, shared, limit_requests, limit_period_seconds, email_verified_at, disabled_at, created_at
			FROM accounts WHERE deleted_at IS NULL AND id > ? ORDER BY id LIMIT ?) AS accounts,
		LATERAL (SELECT count(*) FILTER (WHERE environment = 'live') AS live_keys, count(*) FILTER (WHERE environment = 'test') AS test_keys
			FROM api_keys WHERE account_id = accounts.id AND deleted_at IS NULL) AS keys ORDER BY accounts.id`, after, limit).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("list accounts after %s: %w", after, err)
	}
	listed := make([]ListedAccount, len(rows))
	for n, r := range rows {
		listed[n] = ListedAccount{
			ID: r.ID, Name: r.Name, Email: r.Email, Shared: r.Shared, Verified: r.VerifiedAt != nil, Disabled: r.DisabledAt != nil,
			LiveKeys: r.LiveKeys, TestKeys: r.TestKeys, Passkeys: r.Passkeys, Limit: r.limit(), CreatedAt: r.CreatedAt,
		}
	}
	return listed, nil
}
