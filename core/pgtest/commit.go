package pgtest

import (
	"database/sql"
	"fmt"
	"testing"

	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

// commitLock is the advisory lock that a blocked COMMIT waits for. Advisory locks are of one database.
const commitLock = 7_240_001

// CommitBlock makes every transaction that inserts into a table wait in its COMMIT.
type CommitBlock struct {
	store  *rooms.Rooms
	holder *sql.Tx
}

// BlockCommits blocks the table's commits until Release is called or the test ends.
func BlockCommits(tb testing.TB, store *rooms.Rooms, table string) *CommitBlock {
	tb.Helper()
	Exec(tb, store, fmt.Sprintf(`CREATE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NULL; END $$`, commitLock))
	Exec(tb, store, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER wait_in_commit AFTER INSERT ON %s
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_in_commit()`, table))
	holder, err := store.Pool().BeginTx(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = holder.Rollback() })
	if _, err := holder.ExecContext(tb.Context(), "SELECT pg_advisory_xact_lock($1)", commitLock); err != nil {
		tb.Fatal(err)
	}
	return &CommitBlock{store: store, holder: holder}
}

// Await waits until n transactions wait in their COMMIT.
func (b *CommitBlock) Await(tb testing.TB, n int) {
	tb.Helper()
	asynctest.Eventually(tb, fmt.Sprintf("%d transactions wait in their COMMIT", n), func() bool { return b.waiting(tb) == n })
}

// Release lets the commits continue and waits until they have ended.
func (b *CommitBlock) Release(tb testing.TB) {
	tb.Helper()
	if err := b.holder.Rollback(); err != nil {
		tb.Fatal(err)
	}
	// The lock is held until the transaction has ended, with the trigger's share of it.
	Exec(tb, b.store, "SELECT pg_advisory_xact_lock($1)", commitLock)
}

func (b *CommitBlock) waiting(tb testing.TB) int {
	tb.Helper()
	return LookUp[int](tb, b.store, `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND l.objid = $1 AND NOT granted AND d.datname = current_database()`, commitLock)
}
