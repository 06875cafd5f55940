package postgres_test

import (
	"testing"

	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// A migration that builds an index works on partitioned tables as well, and continues where it was killed.
func TestIndexMigration_Partitioned(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, other)
	owner := insertAccount(t, other, "ann@example.com").ID
	insertIntent(t, other, known, owner, transferBody)
	partition(t, other)
	addMigration(t, store, addedUp, addedDown)
	end := holdWriter(t, other, "transfers")
	done := migrateAside(t, store)
	asynctest.Eventually(t, "the migrator tries to lock the parent", func() bool {
		return pgtest.LookUp[bool](t, other, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX IF NOT EXISTS transfers_added ON ONLY%')`)
	})
	insertIntent(t, other, known, owner, transferBody) // is not kept waiting for the writer that stays
	part := pgtest.LookUp[string](t, other, `SELECT tableoid::regclass::text FROM transfers LIMIT 1`)
	endPart := holdWriter(t, other, part)
	end()
	asynctest.Eventually(t, "the build waits for the writer of a partition and is killed", func() bool {
		return pgtest.LookUp[bool](t, other, `SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX CONCURRENTLY% ON ' || $1 || ' %'`, part)
	})
	if err := <-done; err == nil {
		t.Fatal("the killed migrator reports no error")
	}
	endPart()
	if state := indexState(t, other); state != "invalid" {
		t.Errorf("the killed build leaves the index %s, want invalid", state)
	}
	if applied, err := store.Migrate(t.Context()); err != nil || len(applied) != 1 {
		t.Errorf("migrate again applied %q, %v", applied, err)
	}
	if state := indexState(t, other); state != "valid" {
		t.Errorf("the index is %s after migrating again", state)
	}
	if n := pgtest.LookUp[int](t, other, `SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
		WHERE relname LIKE 'transfers\_added\_%' AND indisvalid`); n != 64 {
		t.Errorf("%d partitions have the index", n)
	}
	if err := store.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if state := indexState(t, other); state != "none" {
		t.Errorf("the index is %s after rolling back", state)
	}
}
