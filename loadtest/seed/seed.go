// Package seed inserts accounts and API keys into a database, more and with other limits than clients of the API may have. Measurements and
// fault injection use it.
package seed

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// Unlimited is a limit that no load reaches.
var Unlimited = account.Limit{Requests: 1_000_000, Period: account.DefaultLimit.Period}

// Account inserts an account without a way to sign in.
func Account(ctx context.Context, conn *pgx.Conn) (id uuid.UUID, err error) {
	id = uuid.New()
	_, err = conn.Exec(ctx, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
		VALUES ($1, 'load', $2, '', now(), now())`, id, id.String()+"@example.com")
	if err != nil {
		return id, fmt.Errorf("insert an account: %w", err)
	}
	return id, nil
}

// Keys inserts test keys of an account, each with this limit, and returns their texts. The account's own limit, which its keys share, is out
// of reach then.
func Keys(ctx context.Context, conn *pgx.Conn, owner uuid.UUID, count int, limit account.Limit) (texts []string, err error) {
	columns := []string{
		"id", "limit_bucket", "account_id", "name", "hash", "start", "environment", "enabled",
		"limit_requests", "limit_period_seconds", "scopes", "networks", "created_at", "updated_at",
	}
	now, anyNetwork := time.Now(), []string{}
	rows := pgx.CopyFromSlice(count, func(n int) ([]any, error) {
		key, id := apikey.New(network.Test), uuid.New()
		hash := key.Hash()
		texts = append(texts, key.Reveal())
		return []any{
			id, id, owner, fmt.Sprintf("load %d", n), hash[:], key.Start(), string(network.Test), true,
			limit.Requests, int(limit.Period / time.Second), apikey.AllScopes.Names(), anyNetwork, now, now,
		}, nil
	})
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"api_keys"}, columns, rows); err != nil {
		return nil, fmt.Errorf("copy keys: %w", err)
	}
	// A change of an account notifies the gateways of all its keys, so it is made once.
	_, err = conn.Exec(ctx, `UPDATE accounts SET limit_requests = 1000000000, limit_period_seconds = 60 WHERE id = $1 AND limit_requests IS DISTINCT FROM 1000000000`, owner)
	if err != nil {
		return nil, fmt.Errorf("raise the limit of an account: %w", err)
	}
	return texts, nil
}
