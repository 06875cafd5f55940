package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"

	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

// database is a store with its pool.
type database interface{ Pool() *sql.DB }

// Exec runs a statement as an operator at a prompt would.
func Exec(tb testing.TB, db database, statement string, args ...any) {
	tb.Helper()
	if _, err := db.Pool().ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// LookUp reads one value.
func LookUp[T any](tb testing.TB, db database, query string, args ...any) (value T) {
	tb.Helper()
	if err := db.Pool().QueryRowContext(tb.Context(), query, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return value
}

// Begin starts a transaction that is rolled back after the test.
func Begin(t *testing.T, store *rooms.Rooms) *sql.Tx {
	t.Helper()
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Lock runs a statement in a transaction that stays open, as another session that has locked something.
func Lock(t *testing.T, store *rooms.Rooms, statement string, args ...any) *sql.Tx {
	t.Helper()
	tx := Begin(t, store)
	if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return tx
}

// RefusedBy is the SQLSTATE and the constraint of a statement that Postgres refused.
func RefusedBy(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err)
	}
	return pg.Code + " " + pg.ConstraintName
}

// Statements notes what a store asks.
type Statements struct {
	Mu   sync.Mutex
	Text []string
}

// BeforeQuery implements bun.QueryHook.
func (s *Statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (s *Statements) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Text = append(s.Text, event.Query)
}

// Take returns what was noted about intents and their events, and forgets it.
func (s *Statements) Take() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	text := slices.DeleteFunc(s.Text, func(query string) bool {
		return !strings.Contains(query, "transfers") && !strings.Contains(query, "events")
	})
	s.Text = nil
	return text
}

// Count returns how many of the statements so far contain the text.
func (s *Statements) Count(text string) (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, statement := range s.Text {
		if strings.Contains(statement, text) {
			n++
		}
	}
	return n
}

// PlanOf is how Postgres would run a statement after these.
func PlanOf(t *testing.T, store *rooms.Rooms, statement string, before ...string) string {
	t.Helper()
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, setting := range before {
		if _, err := tx.ExecContext(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.QueryContext(t.Context(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatalf("EXPLAIN %s: %v", statement, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// Watch has a hook see the statements of a store that nobody uses yet.
func Watch(store *rooms.Rooms, hook bun.QueryHook) { store.DB.DB = store.WithQueryHook(hook) }

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

// BackendCPU is the CPU time in µs of the backends that are connected to a database, which other load on the machine hardly changes; 0 where
// there is no /proc.
func BackendCPU(tb testing.TB, db database) (used float64) {
	tb.Helper()
	const tick = 10_000 // µs, by USER_HZ
	pids := LookUp[string](tb, db, `SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE datname = current_database()`)
	for pid := range strings.FieldsSeq(pids) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		for _, field := range strings.Fields(rest)[11:13] { // utime and stime
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				tb.Fatal(err)
			}
			used += ticks * tick
		}
	}
	return used
}
