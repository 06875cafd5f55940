package faults_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/deploy/stack"
	"intents.internal/loadtest/seed"
	"intents.internal/loadtest/system"
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

// startDatabase starts a Postgres that the test may break. It is durable, fsync and synchronous_commit are on, unless it is ephemeral.
func startDatabase(t *testing.T, config embedded.PostgresConfig) *database {
	t.Helper()
	return startDatabaseOf(t, shared.Binaries, config)
}

// startDatabaseOf is startDatabase for the schema of the programs in a directory.
func startDatabaseOf(t *testing.T, binaries string, config embedded.PostgresConfig) *database {
	t.Helper()
	var log asynctest.Buffer
	if config.Dir == "" && !config.Ephemeral {
		config.Dir = t.TempDir()
	}
	config.Log = func(line string) { fmt.Fprintln(&log, line) }
	copied := binaries == shared.Binaries && !config.Ephemeral
	if copied {
		var err error
		if config.From, err = template(); err != nil {
			t.Fatal(err)
		}
	}
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
	if !copied {
		if err := db.fill(t.Context(), binaries); err != nil {
			t.Fatal(err)
		}
	}
	db.readOwner(t)
	return db
}

// readOwner reads the only account.
func (d *database) readOwner(t *testing.T) {
	t.Helper()
	d.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT id FROM accounts`).Scan(&d.owner)
	})
}

// template is the directory of a stopped database of this version. Tests start from copies, without initdb and core's commands for each.
var template = sync.OnceValues(func() (dir string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir = filepath.Join(filepath.Dir(shared.Binaries), "database")
	server, err := embedded.StartPostgres(ctx, embedded.PostgresConfig{Dir: dir})
	if err != nil {
		return "", err
	}
	err = (&database{url: server.URL}).fill(ctx, shared.Binaries)
	return dir, errors.Join(err, server.Stop())
})

// fill migrates an empty database and gives it the registry and an account.
func (d *database) fill(ctx context.Context, binaries string) error {
	root, err := stack.FindRoot()
	if err != nil {
		return err
	}
	data := filepath.Join(root, "deploy", "data")
	for _, args := range [][]string{
		{"migrate"},
		{"chains", "import", filepath.Join(data, "chains.json")},
		{"tokens", "import", filepath.Join(data, "tokens.json")},
		{"accounts", "create", "faults@example.com"},
	} {
		if err := embedded.Run(ctx, d.command(binaries, args...)); err != nil {
			return err
		}
	}
	return nil
}

// command is one of core's on this database.
func (d *database) command(binaries string, args ...string) embedded.Command {
	return embedded.Command{
		Name: "core " + args[0], Path: filepath.Join(binaries, "core"), Args: args, Env: append(stack.Environ(), "CORE_DATABASE_URL="+d.url),
	}
}

// connect calls use with a connection of its own.
func (d *database) connect(t *testing.T, use func(context.Context, *pgx.Conn) error) {
	t.Helper()
	system.Connect(t, d.url, use)
}

func (d *database) execute(t *testing.T, statement string, arguments ...any) {
	t.Helper()
	system.Execute(t, d.url, statement, arguments...)
}

// newKeys inserts test keys with the default limit: an account may create a hundred at most.
func (d *database) newKeys(t *testing.T, count int) []string {
	t.Helper()
	return d.newKeysLimited(t, count, account.DefaultLimit)
}

// newUnlimitedKeys makes keys whose limit is out of reach.
func (d *database) newUnlimitedKeys(t *testing.T, count int) []string {
	t.Helper()
	return d.newKeysLimited(t, count, seed.Unlimited)
}

func (d *database) newKeysLimited(t *testing.T, count int, limit account.Limit) (texts []string) {
	t.Helper()
	d.connect(t, func(ctx context.Context, conn *pgx.Conn) (err error) {
		texts, err = seed.Keys(ctx, conn, d.owner, count, limit)
		return err
	})
	return texts
}

// newKeys makes keys in the shared database.
func newKeys(t *testing.T, count int) []string {
	t.Helper()
	return shared.database.newKeys(t, count)
}
