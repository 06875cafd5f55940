package intents_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// openSingle opens a store with one connection.
func openSingle(tb testing.TB, url string) *rooms.Rooms {
	tb.Helper()
	store, err := rooms.Open(url, postgres.Options{MaxConnections: 1, StatementTimeout: 2 * time.Minute, AcquireTimeout: 2 * time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

const preparedInserts = `SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'insert_transfers%'`

// randomIntent has values of all lengths and bounds in the columns that a request or the registry decides.
func randomIntent(tb testing.TB, random *rand.Rand, known *registry.Snapshot) (*transfer.Intent, intents.Idempotency) {
	tb.Helper()
	oneOf := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	body := oneOf(pgtest.TransferBody, pgtest.SwapBody, pgtest.BridgeBody)
	intent := pgtest.NewIntent(tb, known, uuid.New(), body)
	digits := make([]byte, 32)
	for n := range digits {
		digits[n] = byte(random.Uint32())
	}
	intent.Source.Amount.SetBytes(digits).Rsh(intent.Source.Amount, uint(random.IntN(256))).SetBit(intent.Source.Amount, random.IntN(2), 1)
	if random.IntN(4) == 0 {
		intent.Source.Amount.Sub(intent.Source.Amount.Lsh(big.NewInt(1), 256), big.NewInt(1)) // the largest
	}
	intent.Destination.Amount.Set(intent.Source.Amount)
	intent.Reference = oneOf("", "inv-42", `'; "\ ?0 😀`+"\t", "NULL", strings.Repeat("ü", 128), " ")
	intent.Labels = wire.Labels(oneOf("", "", `{"order":"42"}`, `{"a":"'; ?0 \"\\ 😀","b.c-d_E":"NULL"}`))
	anyTime := func() time.Time {
		return time.Unix(random.Int64N(1<<35)-1<<34, random.Int64N(1e9)).In(time.FixedZone("", random.IntN(20*3600)-10*3600))
	}
	intent.Deadline = anyTime()
	s := &intent.Settlement
	s.Scheme, s.Deployment = oneOf("", "StandardOrder", s.Scheme), oneOf("", s.Deployment, strings.Repeat("d", 64))
	s.InputOracle, s.OutputOracle = oneOf("", s.InputOracle), oneOf("", s.OutputOracle)
	if s.Expires = anyTime(); random.IntN(4) == 0 {
		s.Expires = time.Time{}
	}
	var once intents.Idempotency
	if key := oneOf("", "once", `\x00'`, strings.Repeat("k", 255)); key != "" {
		once = pgtest.Idempotent(tb, key, body)
	}
	return intent, once
}

// Rows have in every column what bun writes of the same values.
func TestInsertTransfer_SameRowAsBun(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	pgtest.Exec(t, store, `CREATE TABLE by_bun (LIKE transfers INCLUDING ALL)`)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const rows = 300
	var all sync.WaitGroup
	for range rows {
		intent, once := randomIntent(t, random, known)
		all.Go(func() {
			if _, err := store.Intents.InsertTransfer(t.Context(), intent, once); err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
			if err := intents.InsertTransferWithBun(t.Context(), store.Intents, "by_bun", intent, once); err != nil {
				t.Errorf("seed %d: with bun: %v", seed, err)
			}
		})
	}
	all.Wait()
	const different = `SELECT count(*) FROM (TABLE transfers EXCEPT TABLE by_bun) AS rows`
	if got, stored := pgtest.LookUp[int](t, store, different), pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); got > 0 || stored != rows {
		t.Errorf("seed %d: %d of %d rows differ, the first is\n%s\nand with bun\n%s", seed, got, stored,
			pgtest.LookUp[string](t, store, `SELECT coalesce(min(r::text), '') FROM (TABLE transfers EXCEPT TABLE by_bun) AS r`),
			pgtest.LookUp[string](t, store, `SELECT coalesce(min(r::text), '') FROM (TABLE by_bun EXCEPT TABLE transfers) AS r`))
	}
	for column, want := range map[string]bool{
		"reference": true, "idempotency_key": true, "deployment": true, "input_oracle": true, "output_oracle": true, "expires": true,
		"labels": true, "hash": false, "failure": false,
	} {
		query := fmt.Sprintf(`SELECT count(*) FILTER (WHERE %[1]s IS NULL) > 0 AND (count(*) FILTER (WHERE %[1]s IS NOT NULL) > 0) = $1 FROM transfers`, column)
		if !pgtest.LookUp[bool](t, store, query, want) {
			t.Errorf("seed %d: %s is not NULL in some rows and set in others", seed, column)
		}
	}
	const events = `SELECT count(*) FROM events JOIN transfers ON transfers.id = transfer_id AND transfers.account_id = events.account_id
		WHERE sequence = 1 AND to_status = 'created' AND from_status IS NULL AND occurred_at = created_at AND created_at = updated_at`
	if got := pgtest.LookUp[int](t, store, events); got != rows {
		t.Errorf("%d first events, want %d", got, rows)
	}
}

// The prepared insert survives changes of the schema under it and the loss of the prepared statement.
func TestInsertTransfer_PreparedStatement(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, operator := openSingle(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, operator)
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	if prepared := pgtest.LookUp[int](t, store, preparedInserts); prepared != 2 {
		t.Errorf("%d inserts are prepared on a connection to Postgres itself, want 2", prepared)
	}
	for range 10 { // after some executions Postgres keeps a plan that does not depend on the values
		pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.SwapBody)
	}
	for _, change := range []string{
		`ALTER TABLE transfers ADD note text`,
		`DROP INDEX transfers_account_type`,
		`CREATE INDEX CONCURRENTLY transfers_account_type ON transfers (account_id, type, id DESC)`,
		`ALTER TABLE events ADD CONSTRAINT later CHECK (sequence > 0) NOT VALID`,
		`ALTER TABLE transfers ALTER created_at TYPE timestamptz(6)`, // the type of a column of the result
	} {
		pgtest.Exec(t, operator, change)
		pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.SwapBody)
	}
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.SwapBody)
	if prepared := pgtest.LookUp[int](t, store, preparedInserts); prepared != 2 {
		t.Errorf("%d inserts are prepared after the changes, want 2", prepared)
	}
	for _, loss := range []string{`DEALLOCATE ALL`, `DISCARD ALL`} {
		pgtest.Exec(t, store, loss)
		pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	}
	rows := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`)
	if events := pgtest.LookUp[int](t, store, `SELECT count(*) FROM events`); rows != 19 || events != rows {
		t.Errorf("%d intents and %d events, want 19 of each", rows, events)
	}
}

// After the end of its connection the writer takes another one.
func TestInsertTransfer_ConnectionEnded(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, operator := openSingle(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, operator)
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	pgtest.Exec(t, operator, `SELECT pg_terminate_backend($1)`, pgtest.LookUp[int](t, store, `SELECT pg_backend_pid()`))
	intent := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}); err != nil && !postgres.Unavailable(err) {
		t.Errorf("an insert on a connection that has ended: %v", err)
	}
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
}

// Behind a transaction pooler nothing is prepared, and core itself ends an insert whose time limit is not in force.
func TestInsertTransfer_PgBouncer(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, direct)
	pooled := pgtest.Pooler(t, url, "pool_mode = transaction", "default_pool_size = 1", pgtest.IgnoredParameters)
	store := openSingle(t, pooled)
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	if prepared := pgtest.LookUp[int](t, store, preparedInserts); prepared != 0 {
		t.Errorf("%d inserts are prepared behind a pooler", prepared)
	}
	pgtest.Lock(t, direct, `LOCK TABLE transfers`)
	intent := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
	limited := pgtest.OpenWith(t, pooled, postgres.Options{StatementTimeout: 100 * time.Millisecond})
	if _, err := limited.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}); !postgres.Unavailable(err) {
		t.Errorf("an insert that waits for a lock: %v", err)
	}
	asynctest.Eventually(t, "the insert is gone from Postgres as well", func() bool {
		return pgtest.LookUp[bool](t, direct, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})
}

// A commit that waits for a lock keeps no later insert waiting, though it has more rows.
func TestTransferWriter_BlockedCommit(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, operator := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, operator)
	pgtest.Exec(t, operator, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`)
	pgtest.Exec(t, operator, `CREATE TRIGGER wait BEFORE INSERT ON transfers FOR EACH ROW WHEN (NEW.reference IS NOT NULL) EXECUTE FUNCTION wait()`)
	blocker := pgtest.Lock(t, operator, `SELECT pg_advisory_xact_lock(1)`)
	release := holdFlushers(t, store, known)
	var batch sync.WaitGroup
	const rows = 20
	for range rows {
		batch.Go(func() { pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.SwapBody) })
	}
	release(rows)
	asynctest.Eventually(t, "the commit waits", func() bool {
		return pgtest.LookUp[bool](t, operator, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')`)
	})
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	if err := blocker.Rollback(); err != nil {
		t.Error(err)
	}
	batch.Wait()
}

// BenchmarkInsertTransfers inserts from 64 clients into a Postgres without fsync; an operation is one intent.
func BenchmarkInsertTransfers(b *testing.B) {
	store := pgtest.New(b)
	known := pgtest.LoadRegistry(b, store)
	template := pgtest.NewIntent(b, known, uuid.New(), pgtest.SwapBody)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			intent := *template
			intent.ID = uuid.Must(uuid.NewV7())
			intent.OrderID = sha256.Sum256(intent.ID[:])
			if _, err := store.Intents.InsertTransfer(b.Context(), &intent, intents.Idempotency{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
	commits := pgtest.LookUp[int](b, store, `SELECT count(DISTINCT xid) FROM events`)
	b.ReportMetric(float64(b.N)/float64(commits), "rows/commit")
}

// BenchmarkEncodeInsert is the parameters of a batch of 64 intents.
func BenchmarkEncodeInsert(b *testing.B) {
	store := pgtest.New(b)
	known := pgtest.LoadRegistry(b, store)
	batch := make([]*transfer.Intent, 64)
	for n := range batch {
		batch[n] = pgtest.NewIntent(b, known, uuid.New(), pgtest.SwapBody)
	}
	encode := intents.EncodeInsert(batch)
	b.ReportAllocs()
	for b.Loop() {
		encode()
	}
}
