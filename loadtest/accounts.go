package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

// benchAccount is an account with its test keys.
type benchAccount struct {
	id   uuid.UUID
	keys []string
}

// makeAccounts inserts accounts with keysEach test keys each, with limits above the load.
func makeAccounts(ctx context.Context, env stack.Env, count, keysEach int) (accounts []benchAccount, err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	accounts = make([]benchAccount, count)
	for n := range accounts {
		owner := uuid.New()
		_, err := conn.Exec(ctx, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at) VALUES ($1, 'load', $2, '', now(), now())`,
			owner, fmt.Sprintf("load-%d@example.com", n))
		if err != nil {
			return nil, fmt.Errorf("insert an account: %w", err)
		}
		keys := randomKeys(keysEach)
		if err := copyKeys(ctx, conn, owner, keys); err != nil {
			return nil, err
		}
		accounts[n] = benchAccount{owner, reveal(keys)}
	}
	if _, err := conn.Exec(ctx, "UPDATE api_keys SET limit_requests = 1000000"); err != nil {
		return nil, fmt.Errorf("raise the limits: %w", err)
	}
	if err := raiseAccountLimits(ctx, conn); err != nil {
		return nil, err
	}
	return accounts, nil
}
