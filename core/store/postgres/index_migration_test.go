package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intent/registry"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// The migration that these tests add to the others.
const (
	addedName = "20991231000000_added"
	addedUp   = "-- A comment.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS transfers_added\n    ON transfers (created_at)\n    WHERE status <> 'created';\n"
	addedDown = "DROP INDEX CONCURRENTLY IF EXISTS transfers_added;\n"
)

// addMigration gives the store the migrations of this version and one more, outside a transaction.
func addMigration(t *testing.T, store *postgres.Store, up, down string) {
	t.Helper()
	paths, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatalf("migrations: %q, %v", paths, err)
	}
	files := fstest.MapFS{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = &fstest.MapFile{Data: text}
	}
	for path, text := range map[string]string{".up.sql": up, ".down.sql": down} {
		if text != "" {
			files["migrations/"+addedName+path] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	postgres.UseMigrations(store, files)
}

// indexState is what has become of the added index: "valid", "invalid" or "none".
func indexState(t *testing.T, store *postgres.Store) string {
	t.Helper()
	return pgtest.LookUp[string](t, store,
		`SELECT coalesce((SELECT CASE WHEN indisvalid THEN 'valid' ELSE 'invalid' END FROM pg_index WHERE indexrelid = to_regclass('transfers_added')), 'none')`)
}

// holdWriter opens a transaction with the lock that writing to a table takes, for which every concurrent build on it waits.
func holdWriter(t *testing.T, store *postgres.Store, table string) (end func()) {
	t.Helper()
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE `+table+` IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// building is the process id of the server's side of a migrator that is building an index and waits for a writer, 0 for none.
const building = `SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
	AND query ~ 'CREATE (UNIQUE )?INDEX CONCURRENTLY'), 0)`

func TestIndexMigration_KilledBuild(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, other)
	owner := insertAccount(t, other, "ann@example.com")
	insertIntent(t, other, known, owner.ID, transferBody)
	addMigration(t, store, addedUp, addedDown)

	end := holdWriter(t, other, "transfers")
	done := migrateAside(t, store)
	asynctest.Eventually(t, "the build waits for the writer", func() bool { return pgtest.LookUp[int](t, other, building) != 0 })
	// Other writers are not in its way, nor it in theirs.
	insertIntent(t, other, known, owner.ID, swapBody)
	pgtest.Exec(t, other, `SELECT pg_terminate_backend(($1)::int)`, pgtest.LookUp[int](t, other, building))
	if err := <-done; err == nil {
		t.Fatal("the killed migrator reports no error")
	}
	end()
	if state := indexState(t, other); state != "invalid" {
		t.Fatalf("the killed build leaves the index %s, want invalid", state)
	}
	if err := store.CheckMigrated(t.Context()); !errors.Is(err, postgres.ErrUnmigrated) {
		t.Errorf("after the kill CheckMigrated = %v", err)
	}
	for _, want := range []string{addedName, ""} {
		applied, err := store.Migrate(t.Context())
		if err != nil || strings.Join(applied, " ") != want {
			t.Errorf("migrate again applied %q, %v; want %q", applied, err, want)
		}
	}
	if state := indexState(t, other); state != "valid" {
		t.Errorf("the index is %s after migrating again", state)
	}
	if err := store.CheckMigrated(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state := indexState(t, other); state != "none" {
		t.Errorf("the index is %s after rolling back", state)
	}
}

// A process that is killed leaves its server process building; the index is then valid and the migration not recorded.
func TestIndexMigration_BuiltAndNotRecorded(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	addMigration(t, store, addedUp, addedDown)
	pgtest.Exec(t, store, addedUp)
	built := pgtest.LookUp[int64](t, store, `SELECT 'transfers_added'::regclass::oid::bigint`)
	if applied, err := store.Migrate(t.Context()); err != nil || len(applied) != 1 {
		t.Fatalf("applied %q, %v", applied, err)
	}
	if now := pgtest.LookUp[int64](t, store, `SELECT 'transfers_added'::regclass::oid::bigint`); now != built {
		t.Error("the index that was there was built once more")
	}
}

// A migrator that waits for its turn must not be waited for by the build of the one whose turn it is.
func TestIndexMigration_Concurrent(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	other := pgtest.Open(t, url)
	insertIntent(t, other, pgtest.LoadRegistry(t, other), insertAccount(t, other, "ann@example.com").ID, transferBody)
	end := holdWriter(t, other, "transfers")
	const migrators = 4
	var work sync.WaitGroup
	var applied atomic.Int64
	for range migrators {
		store := pgtest.Open(t, url)
		addMigration(t, store, addedUp, addedDown)
		work.Go(func() {
			names, err := store.Migrate(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Error(err)
			}
			applied.Add(int64(len(names)))
		})
	}
	asynctest.Eventually(t, "one builds and the others have asked for the lock", func() bool {
		return pgtest.LookUp[int](t, other, building) != 0 && pgtest.LookUp[int](t, other, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'`) == migrators-1
	})
	end()
	work.Wait()
	if n := applied.Load(); n != 1 {
		t.Errorf("the migration was applied %d times", n)
	}
	if state := indexState(t, other); state != "valid" {
		t.Errorf("the index is %s", state)
	}
}

// The time limits of a role or database do not end a build.
func TestIndexMigration_OutlastsTimeLimits(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	other := pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, other)
	owner := insertAccount(t, other, "ann@example.com")
	insertIntent(t, other, known, owner.ID, transferBody)
	database := pgtest.LookUp[string](t, other, `SELECT current_database()`)
	pgtest.Exec(t, other, `ALTER DATABASE `+database+` SET statement_timeout = '200ms'`)
	pgtest.Exec(t, other, `ALTER DATABASE `+database+` SET lock_timeout = '100ms'`)
	store := pgtest.Open(t, url)
	addMigration(t, store, addedUp, addedDown)
	end := holdWriter(t, other, "transfers")
	done := migrateAside(t, store)
	asynctest.Eventually(t, "the build lasts for longer than both limits", func() bool {
		select {
		case err := <-done:
			t.Fatalf("migrate ended: %v", err)
		default:
		}
		return pgtest.LookUp[bool](t, other, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND query ~ '^CREATE INDEX CONCURRENTLY' AND clock_timestamp() - query_start > interval '600 ms')`)
	})
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if state := indexState(t, other); state != "valid" {
		t.Errorf("the index is %s", state)
	}
}

// Writers are not blocked while a large index is built.
func TestIndexMigration_WritersNotBlocked(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, other)
	owner := insertAccount(t, other, "ann@example.com")
	first := insertIntent(t, other, known, owner.ID, transferBody)
	pgtest.Exec(t, other, `INSERT INTO transfers SELECT (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(),
		'order_id', sha256(n::text::bytea)))).* FROM transfers i, generate_series(1, 2000) n WHERE i.id = $1`, first.ID)
	addMigration(t, store, addedUp, addedDown)
	var written atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		writeUntil(t, other, known, owner.ID, stop, &written)
	}()
	end := holdWriter(t, other, "transfers")
	done := migrateAside(t, store)
	asynctest.Eventually(t, "the build has begun", func() bool { return pgtest.LookUp[int](t, other, building) != 0 })
	before := written.Load()
	asynctest.Eventually(t, "intents are written while the index is built", func() bool { return written.Load() > before+20 })
	if state := indexState(t, other); state != "invalid" {
		t.Errorf("the index is %s while it is built", state)
	}
	end()
	err := <-done
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	// What was written meanwhile is in the index.
	pgtest.Exec(t, other, `UPDATE transfers SET status = 'cancelled' WHERE id <> $1`, first.ID)
	for _, scan := range []string{"enable_indexscan", "enable_seqscan"} {
		n := pgtest.LookUp[int64](t, other, `SELECT count(*) FROM (SELECT set_config($1, 'off', false)) AS s, transfers
			WHERE status <> 'created' AND created_at > '-infinity'`, scan)
		if want := 2000 + written.Load(); n != want {
			t.Errorf("with %s off %d rows are found, want %d", scan, n, want)
		}
	}
}

func writeUntil(t *testing.T, store *postgres.Store, known *registry.Snapshot, owner uuid.UUID, stop <-chan struct{}, written *atomic.Int64) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		intent := newIntent(t, known, owner, transferBody)
		_, err := store.InsertTransfer(ctx, intent, postgres.Idempotency{})
		cancel()
		if err != nil {
			t.Errorf("write while the index is built: %v", err)
			return
		}
		written.Add(1)
	}
}

func TestIndexMigration_Refused(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	for name, c := range map[string]struct{ up, down string }{
		"two statements":          {addedUp + `SELECT 1;`, addedDown},
		"another statement":       {`ALTER TABLE transfers ADD note text`, addedDown},
		"not concurrent":          {`CREATE INDEX IF NOT EXISTS transfers_added ON transfers (created_at)`, addedDown},
		"not repeatable":          {`CREATE INDEX CONCURRENTLY transfers_added ON transfers (created_at)`, addedDown},
		"no name":                 {`CREATE INDEX CONCURRENTLY IF NOT EXISTS ON transfers (created_at)`, addedDown},
		"another schema":          {`CREATE INDEX CONCURRENTLY IF NOT EXISTS transfers_added ON public.transfers (created_at)`, addedDown},
		"nothing":                 {"-- nothing\n", addedDown},
		"no way back":             {addedUp, ""},
		"no way forth":            {"", addedDown},
		"another index back":      {addedUp, `DROP INDEX CONCURRENTLY IF EXISTS transfers_expiry`},
		"a blocking way back":     {addedUp, `DROP INDEX IF EXISTS transfers_added`},
		"an unrepeatable one":     {addedUp, `DROP INDEX CONCURRENTLY transfers_added`},
		"created back and forth":  {addedUp, addedUp},
		"dropped back and forth":  {addedDown, addedDown},
		"two names in a way back": {addedUp, `DROP INDEX CONCURRENTLY IF EXISTS transfers_added, transfers_expiry`},
	} {
		store := pgtest.Open(t, url)
		addMigration(t, store, c.up, c.down)
		if applied, err := store.Migrate(t.Context()); err == nil {
			t.Errorf("%s: applied %q", name, applied)
		}
		if state := indexState(t, store); state != "none" {
			t.Errorf("%s: the index is %s", name, state)
		}
	}
}
