package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

// use makes a query, as each of the store's methods does.
func use(ctx context.Context, store *rooms.Rooms) error {
	_, _, err := store.Registry.RegistryVersion(ctx)
	return err
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := pgtest.Open(t, url)
	for name, fail := range map[string]func(*testing.T) error{
		"nothing listens": func(t *testing.T) error {
			t.Helper()
			return use(t.Context(), pgtest.Open(t, pgtest.Closed(t)))
		},
		"no connection is let in": func(t *testing.T) error {
			t.Helper()
			gate := pgtest.NewGate(t, url)
			gate.Shut()
			return use(t.Context(), pgtest.Open(t, gate.URL))
		},
		"an idle connection was cut and no new one is let in": func(t *testing.T) error {
			t.Helper()
			gate := pgtest.NewGate(t, url)
			store := pgtest.Open(t, gate.URL)
			if err := use(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			gate.Shut()
			return use(t.Context(), store)
		},
		"cut in the midst of a statement": func(t *testing.T) error {
			t.Helper()
			gate := pgtest.NewGate(t, url)
			return interrupted(t, direct, pgtest.Open(t, gate.URL), func(int) { gate.Shut() })
		},
		"the server ends the connection in the midst of a statement": func(t *testing.T) error {
			t.Helper()
			return interrupted(t, direct, pgtest.Open(t, url), func(pid int) {
				pgtest.Exec(t, direct, `SELECT pg_terminate_backend($1)`, pid)
			})
		},
		"an operator cancels the statement": func(t *testing.T) error {
			t.Helper()
			return interrupted(t, direct, pgtest.Open(t, url), func(pid int) {
				pgtest.Exec(t, direct, `SELECT pg_cancel_backend($1)`, pid)
			})
		},
		"the statement takes too long": func(t *testing.T) error {
			t.Helper()
			store, err := rooms.Open(url, postgres.Options{StatementTimeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			_, err = store.Pool().ExecContext(t.Context(), `SELECT pg_sleep(20)`)
			return err
		},
		"the lock is not granted in time": func(t *testing.T) error {
			t.Helper()
			database := pgtest.Database(t)
			pgtest.Lock(t, pgtest.Open(t, database), `LOCK TABLE transfers`)
			store, err := rooms.Open(database, postgres.Options{StatementTimeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			_, err = store.Intents.Transfer(t.Context(), uuid.New(), uuid.New())
			return err
		},
		"the caller's deadline passes": func(t *testing.T) error {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			return use(ctx, direct)
		},
		"too many connections": func(t *testing.T) error {
			t.Helper()
			return use(t.Context(), pgtest.Open(t, crowded(t, direct, url)))
		},
		"the pooler has no connection free in time": func(t *testing.T) error {
			t.Helper()
			pooled := pgtest.Pooler(t, url, "pool_mode = transaction", "default_pool_size = 1", "query_wait_timeout = 1", pgtest.IgnoredParameters)
			pgtest.Begin(t, pgtest.Open(t, pooled))
			return use(t.Context(), pgtest.Open(t, pooled))
		},
		"wrapped": func(t *testing.T) error {
			t.Helper()
			return fmt.Errorf("wrapped: %w", use(t.Context(), pgtest.Open(t, pgtest.Closed(t))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := fail(t); !postgres.Unavailable(err) {
				t.Errorf("%v counts as an error of the query", err)
			}
		})
	}
	t.Run("a fault of the query", func(t *testing.T) {
		t.Parallel()
		for _, statement := range []string{`SELECT FROM nowhere`, `SELECT 1/0`, `INSERT INTO registry_version (version) VALUES (1)`, `SELEC`} {
			_, err := direct.Pool().ExecContext(t.Context(), statement)
			if err == nil || postgres.Unavailable(err) {
				t.Errorf("%s: %v is taken for an outage", statement, err)
			}
		}
		if postgres.Unavailable(nil) || postgres.Unavailable(sql.ErrNoRows) || postgres.Unavailable(context.Canceled) {
			t.Error("what is no outage is taken for one")
		}
	})
}

// interrupted runs a statement that never ends, calls interrupt once it runs and returns how it ends.
func interrupted(t *testing.T, watcher, store *rooms.Rooms, interrupt func(pid int)) error {
	t.Helper()
	conn, err := store.Pool().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := conn.ExecContext(t.Context(), `SELECT pg_sleep(20)`)
		ended <- err
	}()
	asynctest.Eventually(t, "the statement runs", func() bool {
		return pgtest.LookUp[bool](t, watcher, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')`, pid)
	})
	interrupt(pid)
	return <-ended
}

// crowded is the URL of the same database for a role that has all its connections.
func crowded(t *testing.T, store *rooms.Rooms, databaseURL string) string {
	t.Helper()
	role := "intents_test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	pgtest.Exec(t, store, `CREATE ROLE `+role+` LOGIN PASSWORD 'crowded' CONNECTION LIMIT 0`)
	t.Cleanup(func() {
		_, _ = store.Pool().ExecContext(context.WithoutCancel(t.Context()), `DROP ROLE `+role)
	})
	target, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	target.User = url.UserPassword(role, "crowded")
	return target.String()
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"postgres://user:secret@host:port/name", "mysql=1 secret", "postgres://%zz:secret@h/d"} {
		for name, open := range map[string]func() (*rooms.Rooms, error){
			"the database URL":          func() (*rooms.Rooms, error) { return rooms.Open(bad, postgres.Options{}) },
			"CORE_MIGRATE_DATABASE_URL": func() (*rooms.Rooms, error) { return rooms.Open("", postgres.Options{MigrateURL: bad}) },
			"CORE_READ_DATABASE_URL":    func() (*rooms.Rooms, error) { return rooms.Open("", postgres.Options{ReadURL: bad}) },
		} {
			if _, err := open(); err == nil || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), name+" cannot be read") {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
	store, err := rooms.Open(pgtest.Database(t), postgres.Options{StatementTimeout: 20 * time.Second, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.CheckReadWrite(t.Context()); err != nil {
		t.Error(err)
	}
	for setting, want := range map[string]string{
		"application_name": "intents-core", "TimeZone": "UTC", "statement_timeout": "20s", "lock_timeout": "10s",
		"idle_in_transaction_session_timeout": "40s",
	} {
		if got := pgtest.LookUp[string](t, store, `SELECT current_setting($1)`, setting); got != want {
			t.Errorf("%s = %s, want %s", setting, got, want)
		}
	}
	if err := pgtest.Open(t, pgtest.Closed(t)).CheckReadWrite(t.Context()); !postgres.Unavailable(err) {
		t.Errorf("ask a server that is down: %v", err)
	}
}
