package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

// limited are statements of a tenth of a second.
var limited = postgres.Options{StatementTimeout: 100 * time.Millisecond}

func notInForce(t *testing.T, store *rooms.Rooms) []string {
	t.Helper()
	missing, err := store.LimitsNotInForce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

// The error of a pooler that refuses core's startup parameters names the setting of the pooler.
func TestLimitsNotInForce_RefusedParameters(t *testing.T) {
	t.Parallel()
	store := pgtest.OpenWith(t, pgtest.Pooler(t, pgtest.Database(t), "pool_mode = transaction"), limited)
	_, err := store.LimitsNotInForce(t.Context())
	for what, err := range map[string]error{"limits": err, "start": store.CheckMigrated(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), pgtest.IgnoredParameters) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Time limits that a pooler does not pass on are reported, and core enforces them itself. Limits of the role or database are in
// force behind a pooler too.
func TestLimitsNotInForce_PgBouncer(t *testing.T) {
	t.Parallel()
	database := pgtest.Unmigrated(t)
	direct := pgtest.Open(t, database)
	if _, err := direct.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing := notInForce(t, pgtest.OpenWith(t, database, limited)); len(missing) > 0 {
		t.Errorf("without a pooler: %q", missing)
	}
	store := pgtest.OpenWith(t, pgtest.Pooler(t, database, smallPool...), limited)
	want := []string{
		"idle_in_transaction_session_timeout is 0 ms, not 200 ms", "lock_timeout is 0 ms, not 50 ms", "statement_timeout is 0 ms, not 100 ms",
	}
	if diff := cmp.Diff(want, notInForce(t, store)); diff != "" {
		t.Errorf("limits that are not in force (-want +got):\n%s", diff)
	}
	for setting, want := range map[string]string{"application_name": "intents-core", "TimeZone": "UTC"} {
		if got := pgtest.LookUp[string](t, store, `SELECT current_setting($1)`, setting); got != want {
			t.Errorf("%s = %s, want %s", setting, got, want)
		}
	}

	pgtest.Lock(t, direct, `LOCK TABLE transfers`)
	started := time.Now()
	if _, err := store.Intents.Transfer(t.Context(), uuid.New(), uuid.New()); !postgres.Unavailable(err) || time.Since(started) > 5*time.Second {
		t.Errorf("a statement that waits for a lock: %v after %s", err, time.Since(started))
	}
	asynctest.Eventually(t, "the statement is gone from Postgres as well", func() bool {
		return pgtest.LookUp[bool](t, direct, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})

	target, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, direct, `ALTER DATABASE `+target.Path[1:]+` SET statement_timeout = '100ms'`)
	pgtest.Exec(t, direct, `ALTER DATABASE `+target.Path[1:]+` SET lock_timeout = '50ms'`)
	pgtest.Exec(t, direct, `ALTER DATABASE `+target.Path[1:]+` SET idle_in_transaction_session_timeout = '200ms'`)
	// Settings of a role or a database count for connections that begin after them.
	store = pgtest.OpenWith(t, pgtest.Pooler(t, database, smallPool...), limited)
	if missing := notInForce(t, store); len(missing) > 0 {
		t.Errorf("where Postgres has them itself: %q", missing)
	}
	if _, err := store.Intents.Transfer(t.Context(), uuid.New(), uuid.New()); pgtest.RefusedBy(err) != "55P03 " {
		t.Errorf("a statement that waits for a lock: %v, want a lock that was not granted in time", err)
	}
}

// Migrations refuse every pooler: the check cannot tell one of sessions from one of transactions.
func TestMigrate_Pooler(t *testing.T) {
	t.Parallel()
	database := pgtest.Unmigrated(t)
	pooled := pgtest.Pooler(t, database, smallPool...)
	sessions := pgtest.Pooler(t, database, "pool_mode = session", "default_pool_size = 4", pgtest.IgnoredParameters)
	for mode, through := range map[string]string{"transaction": pooled, "session": sessions} {
		if applied, err := pgtest.Open(t, through).Migrate(t.Context()); !errors.Is(err, postgres.ErrPooled) ||
			!strings.Contains(err.Error(), "set CORE_MIGRATE_DATABASE_URL") || len(applied) > 0 {
			t.Errorf("through a pooler in %s mode: %q, %v", mode, applied, err)
		}
	}
	if err := pgtest.Open(t, database).CheckMigrated(t.Context()); !errors.Is(err, postgres.ErrUnmigrated) {
		t.Errorf("it has done something: %v", err)
	}

	// With CORE_MIGRATE_DATABASE_URL any number of cores behind the pooler migrate at the same time, and one of them does the work.
	var work sync.WaitGroup
	var mu sync.Mutex
	var applied []string
	workers := 0
	for range 6 {
		store, err := rooms.Open(pooled, postgres.Options{MigrateURL: database})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		work.Go(func() {
			names, err := store.Migrate(t.Context())
			if err == nil {
				err = store.CheckMigrated(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(names) > 0 {
				applied, workers = append(applied, names...), workers+1
			}
		})
	}
	work.Wait()
	if workers != 1 {
		t.Errorf("%d of 6 applied something: %q", workers, applied)
	}
}

// A migration fails on a connection without the lock, as after the loss of the connection that had it.
func TestMigrate_LockLost(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	pgtest.Exec(t, store, `CREATE FUNCTION unlock() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_unlock_all(); END $$`)
	pgtest.Exec(t, store, `CREATE EVENT TRIGGER unlock ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION unlock()`)
	if _, err := store.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "the lock on the schema was lost") {
		t.Errorf("migrate: %v", err)
	}
	if pgtest.LookUp[bool](t, store, `SELECT to_regclass('accounts') IS NOT NULL`) {
		t.Error("a migration was done all the same")
	}
	pgtest.Exec(t, store, `DROP EVENT TRIGGER unlock`)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Errorf("migrate again: %v", err)
	}
}
