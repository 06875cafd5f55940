package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/deploy/stack"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// database is a migrated Postgres with the registry and one account.
type database struct {
	url   string
	owner uuid.UUID // the account of all keys
	// server is nil for the shared database, which no test may stop.
	server *embedded.Postgres
}

// startDatabase starts a Postgres that the test may break. It is durable: fsync and synchronous_commit are on.
func startDatabase(t *testing.T, config embedded.PostgresConfig) *database {
	t.Helper()
	var log asynctest.Buffer
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	config.Log = func(line string) { fmt.Fprintln(&log, line) }
	server, err := embedded.StartPostgres(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log of Postgres:\n%s", log.String())
		}
	})
	db := &database{url: server.URL, server: server}
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(root, "deploy", "data")
	for _, args := range [][]string{
		{"migrate"},
		{"chains", "import", filepath.Join(data, "chains.json")},
		{"tokens", "import", filepath.Join(data, "tokens.json")},
		{"accounts", "create", "faults@example.com"},
	} {
		if err := embedded.Run(t.Context(), embedded.Command{
			Name: "core " + args[0], Path: filepath.Join(shared.binaries, "core"), Args: args,
			Env: append(os.Environ(), "CORE_DATABASE_URL="+db.url),
		}); err != nil {
			t.Fatal(err)
		}
	}
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT id FROM accounts`).Scan(&db.owner)
	})
	return db
}

// startServices starts a core with these settings on the database, and a gateway with a Redis of its own before it.
func startServices(t *testing.T, db *database, coreEnv ...string) (server *coreServer, fleet []*gateway) {
	t.Helper()
	server = newCoreServerOn(t, db)
	server.env = append(server.env, coreEnv...)
	server.start(t)
	server.awaitReady(t)
	return server, startGateways(t, 1, fleetConfig{redis: startRedis(t).address, core: server.url, env: unhurried()})
}

// connect gives use a connection of its own, past core's pool.
func (d *database) connect(t *testing.T, use func(context.Context, *pgx.Conn) error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := use(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

func (d *database) execute(t *testing.T, statement string, arguments ...any) {
	t.Helper()
	d.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement, arguments...)
		return err
	})
}

// newKeys makes test keys with the usual limit, straight in the table, since a client may have a hundred at most.
func (d *database) newKeys(t *testing.T, count int) []string {
	t.Helper()
	return d.newKeysLimited(t, count, account.DefaultLimit.Requests)
}

// newBoundlessKeys makes keys whose limit nobody reaches.
func (d *database) newBoundlessKeys(t *testing.T, count int) []string {
	t.Helper()
	return d.newKeysLimited(t, count, 1_000_000)
}

func (d *database) newKeysLimited(t *testing.T, count, requests int) []string {
	t.Helper()
	texts := make([]string, count)
	now := time.Now()
	rows := pgx.CopyFromSlice(count, func(n int) ([]any, error) {
		key := apikey.New(network.Test)
		texts[n] = key.Reveal()
		hash := key.Hash()
		return []any{
			uuid.New(), d.owner, fmt.Sprintf("fault %d", n), hash[:], key.Start(), string(network.Test), true,
			requests, int(account.DefaultLimit.Period / time.Second), now, now,
		}, nil
	})
	columns := []string{
		"id", "account_id", "name", "hash", "start", "environment", "enabled",
		"limit_requests", "limit_period_seconds", "created_at", "updated_at",
	}
	d.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{"api_keys"}, columns, rows); err != nil {
			return err
		}
		// The account has more keys than clients may have. The release before has no limit of accounts. A change tells every gateway
		// of every key, so that there is one.
		_, err := conn.Exec(ctx, `DO $$ BEGIN
			UPDATE accounts SET limit_requests = 1000000000, limit_period_seconds = 60 WHERE limit_requests IS NULL;
		EXCEPTION WHEN undefined_column THEN NULL; END $$`)
		return err
	})
	return texts
}

// newKeys and the like make keys in the shared database.
func newKeys(t *testing.T, count int) []string {
	t.Helper()
	return shared.database.newKeys(t, count)
}

func newBoundlessKeys(t *testing.T, count int) []string {
	t.Helper()
	return shared.database.newBoundlessKeys(t, count)
}
