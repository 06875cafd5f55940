package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/deploy/stack"
	"intents.internal/loadtest/seed"
	"intents.internal/pkg/testkit/embedded"
)

const (
	keysPerAccount = 20
	// pagedAccounts have pagedIntents intents each, for pages.
	pagedAccounts, pagedIntents = 50, 200
)

// bareInsert inserts the row of an intent into a table with the same columns, without indexes and constraints.
const bareInsert = `\set n random(1, 1000000000)
INSERT INTO bare_transfers (id, account_id, key_id, environment, type, status, order_id, order_scheme,
  source_chain, source_account, source_token, source_amount,
  destination_chain, destination_account, destination_token, destination_amount,
  origin_settler, destination_settler, deadline, created_at, updated_at)
VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'test', 'transfer', 'created', sha256(:n::text::bytea), 'oif-v1/StandardOrder',
  'eip155:11155111', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
  'eip155:11155111', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
  '', '', now() + interval '1 hour', now(), now());
`

// The names of the stacks.
const (
	thisRelease  = "this release"
	otherRelease = "the other release"
)

// wholeBench is the stacks of the scenario whole. Their databases are durable, and their processes are not pinned to CPUs.
type wholeBench struct {
	wholeFlags
	*bench
	pgbench string
	// loops counts the closed loops; the number is part of their file names.
	loops int
	// stacks are the stacks of this release and of the peer release, if any.
	stacks []*wholeStack
}

// wholeStack is the stack of one release, with keys of many accounts.
type wholeStack struct {
	name     string
	postgres *embedded.Postgres
	stack    *stack.Stack
	// good keys are within their limits, paged ones belong to the accounts with intents, and limited ones exceed their limit.
	good, paged, limited *keyList
	// paging is an account with intents.
	paging uuid.UUID
}

func openWholeBench(ctx context.Context, f wholeFlags) (b *wholeBench, err error) {
	b = &wholeBench{wholeFlags: f, bench: newBench()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.pgbench, err = findPgbench(); err != nil {
		return b, err
	}
	if err := b.openFiles(f.out, "whole"); err != nil {
		return b, err
	}
	if err := b.startRelease(ctx, thisRelease, ""); err != nil {
		return b, err
	}
	if f.peer == "" {
		return b, nil
	}
	return b, b.startRelease(ctx, otherRelease, f.peer)
}

// startRelease starts the stack of a release, which is this one if binaries is empty, and creates its accounts.
func (b *wholeBench) startRelease(ctx context.Context, name, binaries string) (err error) {
	fmt.Println("starting the stack of", name)
	dir := filepath.Join(b.dir, fmt.Sprintf("stack-%d", len(b.stacks)))
	w := &wholeStack{name: name}
	b.stacks = append(b.stacks, w)
	w.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresConfig{
		Dir: filepath.Join(dir, "postgres"), Settings: []string{fmt.Sprintf("max_connections=%d", b.clients+100)}, // pgbench has a connection per client
	})
	if err != nil {
		return err
	}
	w.stack, err = stack.Start(ctx, stack.Config{
		Data: dir, Listen: "127.0.0.1:0", Binaries: binaries, DatabaseURL: w.postgres.URL, Log: requestLogFilter{b.log},
		CoreEnv:    []string{"CORE_GATEWAY_SECRET=" + b.secret, "CORE_ACCESS_LOG=false"},
		GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + b.secret, "GATEWAY_ACCESS_LOG=false", "GATEWAY_KEY_TTL=1h"},
	})
	if err != nil {
		return err
	}
	if w.stack.Env().PID(stack.Redis) == 0 {
		return errors.New("this needs redis-server on PATH: miniredis is too slow to measure")
	}
	return w.makeAccounts(ctx, dir, b.keyCount)
}

// makeAccounts creates the accounts and their keys, and intents for some.
func (w *wholeStack) makeAccounts(ctx context.Context, dir string, keys int) (err error) {
	conn, err := pgx.Connect(ctx, w.stack.Env().DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var good, paged []string
	for n := range keys / keysPerAccount {
		owner, err := seed.Account(ctx, conn)
		if err != nil {
			return err
		}
		own, err := seed.Keys(ctx, conn, owner, keysPerAccount, seed.Unlimited)
		if err != nil {
			return err
		}
		if good = append(good, own...); n >= pagedAccounts {
			continue
		}
		if n == 0 {
			w.paging = owner
		}
		paged = append(paged, own...)
		if err := copyIntents(ctx, conn, owner, n*pagedIntents, (n+1)*pagedIntents); err != nil {
			return err
		}
	}
	limited, err := seed.Keys(ctx, conn, w.paging, limitedKeys, account.DefaultLimit)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE bare_transfers (LIKE transfers INCLUDING DEFAULTS)"); err != nil {
		return fmt.Errorf("make the table of pgbench: %w", err)
	}
	for _, list := range []struct {
		name string
		keys []string
		into **keyList
	}{{"good", good, &w.good}, {"paged", paged, &w.paged}, {"limited", limited, &w.limited}} {
		if *list.into, err = newKeyList(dir, list.name, list.keys); err != nil {
			return err
		}
	}
	return nil
}

func (b *wholeBench) close() error {
	var errs []error
	for _, s := range b.stacks {
		if s.stack != nil {
			errs = append(errs, s.stack.Stop())
		}
		if s.postgres != nil {
			errs = append(errs, s.postgres.Stop())
		}
	}
	return errors.Join(append(errs, b.bench.close())...)
}
