package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

func TestMigrate_UpDownUp(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	applied, err := store.Migrate(t.Context())
	if err != nil || len(applied) == 0 {
		t.Fatalf("up: applied %q, %v", applied, err)
	}
	up := schemaOf(t, store)
	if again, err := store.Migrate(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("up once more: applied %q, %v", again, err)
	}
	if err := store.Rollback(t.Context()); err != nil {
		t.Fatalf("down: %v", err)
	}
	if left := schemaOf(t, store); len(left) != 0 {
		t.Errorf("down leaves:\n%s", strings.Join(left, "\n"))
	}
	again, err := store.Migrate(t.Context())
	if err != nil {
		t.Fatalf("up again: %v", err)
	}
	if diff := cmp.Diff(applied, again); diff != "" {
		t.Errorf("the second time up applies other migrations (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(up, schemaOf(t, store)); diff != "" {
		t.Errorf("the second time up makes another schema (-first +second):\n%s", diff)
	}
}

// The down file of each migration reverts its up file and nothing else.
func TestMigrations_Down(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	ups, err := filepath.Glob("migrations/*.up.sql")
	if err != nil || len(ups) == 0 {
		t.Fatalf("migrations: %q, %v", ups, err)
	}
	run := func(file string) []string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, store, string(text))
		return schemaOf(t, store)
	}
	before := schemaOf(t, store)
	for _, up := range ups {
		down := strings.TrimSuffix(up, ".up.sql") + ".down.sql"
		after := run(up)
		if diff := cmp.Diff(before, run(down)); diff != "" {
			t.Errorf("%s leaves another schema than there was (-before +after):\n%s", down, diff)
		}
		if diff := cmp.Diff(after, run(up)); diff != "" {
			t.Errorf("%s makes another schema the second time (-first +second):\n%s", up, diff)
		}
		before = after
	}
}

// schemaOf writes the schema down, a line for each column, index, constraint, trigger and function.
func schemaOf(t *testing.T, store *rooms.Rooms) []string {
	t.Helper()
	rows, err := store.Pool().QueryContext(t.Context(), `
		SELECT line FROM (
			SELECT concat_ws(' ', 'column', table_name, column_name, data_type, is_nullable, column_default) AS line
			FROM information_schema.columns WHERE table_schema = 'public'
			UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
			FROM pg_constraint WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
			UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		) AS schema WHERE line NOT LIKE '%bun_migration%' ORDER BY line`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestMigrate_SmallPool(t *testing.T) {
	t.Parallel()
	store, err := rooms.Open(pgtest.Unmigrated(t), postgres.Options{MaxConnections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := store.Migrate(ctx); err != nil {
		t.Error(err)
	}
}

func TestMigrate_OutlastsStatementTimeout(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	other := pgtest.Open(t, url)
	impatient, err := rooms.Open(url, postgres.Options{StatementTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()

	makeWay := inTheWay(t, other)
	done := migrateAside(t, impatient)
	asynctest.Eventually(t, "the migration waits for longer than a statement may take", func() bool {
		return pgtest.LookUp[bool](t, other, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '400 ms')`)
	})
	if err := makeWay(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("migrate: %v", err)
	}
}

// inTheWay lets every migration wait until what it returns is called.
func inTheWay(t *testing.T, store *rooms.Rooms) (makeWay func() error) {
	t.Helper()
	return pgtest.Lock(t, store, "CREATE TABLE accounts ()").Rollback
}

func migrateAside(t *testing.T, store *rooms.Rooms) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := store.Migrate(context.WithoutCancel(t.Context()))
		done <- err
	}()
	return done
}

func TestMigrate_AfterKilledMigrator(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	makeWay := inTheWay(t, other)
	done := migrateAside(t, store)
	asynctest.Eventually(t, "the migrator is in the midst of its work and killed", func() bool {
		return pgtest.LookUp[bool](t, other, `SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE TABLE accounts%'`)
	})
	if err := <-done; err == nil {
		t.Error("the killed migrator reports no error")
	}
	if err := makeWay(); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckMigrated(t.Context()); !errors.Is(err, postgres.ErrUnmigrated) {
		t.Errorf("after the kill CheckMigrated = %v", err)
	}
	if applied, err := store.Migrate(t.Context()); err != nil || len(applied) == 0 {
		t.Errorf("the next migrator applied %q, %v", applied, err)
	}
}

func TestMigrate_AfterKillBeforeRecord(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	if err := store.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What the migrator writes after the commit of a migration fails, as for a process that is killed then.
	pgtest.Exec(t, store, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'dead'; END $$`)
	pgtest.Exec(t, store, `CREATE TRIGGER die BEFORE UPDATE ON bun_migrations FOR EACH ROW EXECUTE FUNCTION die()`)
	if _, err := store.Migrate(t.Context()); err == nil {
		t.Fatal("migrate reports no error")
	}
	pgtest.Exec(t, store, `DROP TRIGGER die ON bun_migrations`)
	pgtest.Exec(t, store, `DROP FUNCTION die`)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Errorf("up: %v", err)
	}
	if err := store.CheckMigrated(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.Rollback(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
}

func TestCheckMigrated(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	check := func(when string, want error) {
		t.Helper()
		if err := store.CheckMigrated(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	check("empty", postgres.ErrUnmigrated)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("migrated", nil)
	pgtest.Exec(t, store, `INSERT INTO bun_migrations (name, group_id) VALUES ('29991231000000', 99)`)
	check("ahead", nil)
	if applied, err := store.Migrate(t.Context()); err != nil || len(applied) != 0 {
		t.Errorf("migrate a database that is ahead: applied %q, %v", applied, err)
	}
	pgtest.Exec(t, store, `DELETE FROM bun_migrations WHERE name < '2999'`)
	check("half", postgres.ErrUnmigrated)
}

// A database in another encoding would refuse most characters, one row at a time.
func TestMigrate_Encoding(t *testing.T) {
	t.Parallel()
	base := pgtest.Unmigrated(t)
	admin := pgtest.Open(t, base)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := pgtest.LookUp[string](t, admin, `SELECT current_database() || $1`, strings.ToLower("_"+encoding))
		pgtest.Exec(t, admin, fmt.Sprintf(`CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`, name, encoding))
		t.Cleanup(func() {
			_, _ = admin.Pool().ExecContext(context.WithoutCancel(t.Context()), `DROP DATABASE `+name+` WITH (FORCE)`)
		})
		target, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		target.Path = "/" + name
		core := pgtest.Open(t, target.String())
		_, err = core.Migrate(t.Context())
		for does, err := range map[string]error{"migrate": err, "start": core.CheckMigrated(t.Context())} {
			if !errors.Is(err, postgres.ErrEncoding) || !strings.Contains(err.Error(), "it is "+encoding) {
				t.Errorf("%s: %v", does, err)
			}
		}
		if left := schemaOf(t, core); len(left) != 0 {
			t.Errorf("migrating leaves:\n%s", strings.Join(left, "\n"))
		}
	}
}
