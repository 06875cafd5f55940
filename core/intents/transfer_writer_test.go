package intents_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// held is how many intents holdFlushers adds.
const held = 2

// holdFlushers locks the table and gives each flusher an intent of its own to wait with, so that further inserts gather.
// release waits until so many have.
func holdFlushers(t *testing.T, store *rooms.Rooms, known *registry.Snapshot) (release func(gathered int)) {
	t.Helper()
	blocker := pgtest.Lock(t, store, "LOCK TABLE transfers IN EXCLUSIVE MODE")
	var writes sync.WaitGroup
	for n := range held {
		writes.Go(func() { pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody) })
		asynctest.Eventually(t, fmt.Sprintf("%d flushers wait for the table", n+1), func() bool {
			return pgtest.LookUp[int](t, store, `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
				WHERE NOT granted AND d.datname = current_database()`) == n+1
		})
	}
	return func(gathered int) {
		asynctest.Eventually(t, fmt.Sprintf("%d inserts wait", gathered), func() bool { return intents.InsertsWaiting(store.Intents) == gathered })
		if err := blocker.Rollback(); err != nil {
			t.Error(err)
		}
		writes.Wait()
	}
}

// Concurrent inserts share commits: far fewer transactions than rows.
func TestTransferWriter_SharedCommits(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	const clients, each = 64, 10
	release := holdFlushers(t, store, known)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			owner := uuid.New()
			for range each {
				pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
			}
		})
	}
	release(clients)
	all.Wait()
	rows := pgtest.LookUp[int](t, store, "SELECT count(*) FROM transfers")
	commits := pgtest.LookUp[int](t, store, "SELECT count(DISTINCT xid) FROM events")
	if rows != held+clients*each || commits > rows/4 {
		t.Errorf("%d rows in %d commits", rows, commits)
	}
}

// A flusher leaves the queue alone while another one writes more rows than the queue has, and takes a single insert at once.
func TestTransferWriter_GroupsCommits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writing, queued, more int
		ended                 bool
		want                  int
	}{
		"nothing is written":         {writing: 0, queued: 1, want: 1},
		"as many are written":        {writing: 1, queued: 1, want: 1},
		"more are written":           {writing: 10, queued: 9, want: 0},
		"the queue grows to as many": {writing: 10, queued: 3, more: 7, want: 10},
		"the commit ends":            {writing: 10, queued: 3, ended: true, want: 3},
		"more than a batch":          {writing: 128, queued: 200, want: 128},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				queue := intents.NewWriterQueue()
				if queue.Add(c.writing); c.writing > 0 {
					queue.Take()
				}
				queue.Add(c.queued)
				var taken atomic.Int64
				go func() { taken.Store(int64(queue.Take())) }()
				synctest.Wait()
				queue.Add(c.more)
				if c.ended {
					queue.Written(c.writing)
				}
				synctest.Wait()
				if got := int(taken.Load()); got != c.want {
					t.Errorf("a flusher takes %d, want %d", got, c.want)
				}
				queue.Written(c.writing) // for a flusher that still waits
			})
		})
	}
}

// A row that breaks a constraint fails alone.
func TestTransferWriter_InvalidRow(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	first := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	release := holdFlushers(t, store, known)
	outcomes := make([]error, 40)
	var all sync.WaitGroup
	for n := range outcomes {
		intent := pgtest.NewIntent(t, known, owner, pgtest.TransferBody)
		if n%10 == 3 {
			intent.OrderID = first.OrderID
		}
		all.Go(func() { _, outcomes[n] = store.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}) })
	}
	release(len(outcomes))
	all.Wait()
	for n, err := range outcomes {
		if broken := n%10 == 3; broken != (err != nil) {
			t.Errorf("row %d: %v", n, err)
		}
	}
	if rows := pgtest.LookUp[int](t, store, "SELECT count(*) FROM transfers"); rows != 1+held+36 {
		t.Errorf("%d rows, want %d", rows, 1+held+36)
	}
}

// A row that another transaction has locked fails alone with its account's, and neither the other accounts of the batch nor the rest of
// the queue.
func TestTransferWriter_LockedRow(t *testing.T) {
	t.Parallel()
	store := pgtest.OpenImpatient(t, pgtest.Database(t))
	known := pgtest.LoadRegistry(t, store)
	busy := uuid.New()
	insert := func(owner uuid.UUID, key string, results chan intents.Result) *intents.Insert {
		return store.Intents.NewInsert(t.Context(), pgtest.NewIntent(t, known, owner, pgtest.TransferBody), intents.Idempotency{Key: key}, results)
	}
	if _, err := store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, busy, pgtest.TransferBody), intents.Idempotency{Key: "before"}); err != nil {
		t.Fatal(err)
	}
	// Until it ends, an insert with the key waits for it.
	blocker := pgtest.Lock(t, store, "UPDATE transfers SET idempotency_key = 'locked' WHERE account_id = $1", busy)
	const strangers = 100
	results, ofBusy := make(chan intents.Result, strangers), make(chan intents.Result, 1)
	batch := []*intents.Insert{insert(busy, "locked", ofBusy)}
	for range strangers {
		batch = append(batch, insert(uuid.New(), "", results))
	}
	store.Intents.Enqueue(batch...)
	for range strangers {
		if _, err := store.Intents.Inserted(t.Context(), <-results); err != nil {
			t.Fatalf("another account's: %v", err)
		}
	}
	if _, err := store.Intents.Inserted(t.Context(), <-ofBusy); !postgres.IsLocked(err) {
		t.Errorf("that of the locked account: %v", err)
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// Whatever order idempotency keys come in, in however many batches at once: each makes one intent, one event, and every
// caller gets that intent.
func TestTransferWriter_DuplicateKeys(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	const keys, twins = 20, 32
	var mu sync.Mutex
	made := map[string]map[uuid.UUID]bool{}
	var all sync.WaitGroup
	for twin := range twins {
		all.Go(func() {
			for n := range keys {
				if twin%2 == 1 {
					n = keys - 1 - n
				}
				key := fmt.Sprintf("key-%d", n)
				got, err := store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, owner, pgtest.TransferBody),
					pgtest.Idempotent(t, key, pgtest.TransferBody))
				if err != nil {
					t.Error(err)
					continue
				}
				mu.Lock()
				if made[key] == nil {
					made[key] = map[uuid.UUID]bool{}
				}
				made[key][got.ID] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for key, ids := range made {
		if len(ids) != 1 {
			t.Errorf("%s made %d intents", key, len(ids))
		}
	}
	rows := pgtest.LookUp[int](t, store, "SELECT count(*) FROM transfers")
	events := pgtest.LookUp[int](t, store, "SELECT count(*) FROM events")
	if rows != keys || events != keys {
		t.Errorf("%d intents, %d events; want %d of each", rows, events, keys)
	}
}

// An idempotency key of both environments is two keys: batches that have them in opposite orders do not wait for each other forever.
func TestTransferWriter_KeyOfBothEnvironments(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	pgtest.Exec(t, store, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$`)
	pgtest.Exec(t, store, `CREATE TRIGGER wait BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION wait()`)
	owner, results := uuid.New(), make(chan intents.Result, 4)
	insert := func(body string, env network.Environment) *intents.Insert {
		once := pgtest.Idempotent(t, "order-1", body)
		once.Environment = env
		return store.Intents.NewInsert(t.Context(), pgtest.NewIntent(t, known, owner, body), once, results)
	}
	test := func() *intents.Insert { return insert(pgtest.TransferBody, network.Test) }
	live := func() *intents.Insert { return insert(pgtest.LiveBody, network.Live) }
	store.Intents.Enqueue(test(), live())
	asynctest.Eventually(t, "the first row of that batch is being written", func() bool {
		return pgtest.LookUp[int](t, store, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'") == 1
	})
	store.Intents.Enqueue(live(), test())
	made := map[uuid.UUID]bool{}
	for range 4 {
		got, err := store.Intents.Inserted(t.Context(), <-results)
		if err != nil {
			t.Fatal(err)
		}
		made[got.ID] = true
	}
	if len(made) != 2 {
		t.Errorf("%d intents, want one of each environment", len(made))
	}
}

// Close writes the queue, and later inserts are unavailable.
func TestTransferWriter_Close(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, other)
	intent := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	late := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), late, intents.Idempotency{}); !postgres.Unavailable(err) {
		t.Errorf("insert after closing: %v, want an error that is worth another try", err)
	}
	if _, err := other.Intents.Transfer(t.Context(), late.AccountID, late.ID); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("the refused intent: %v", err)
	}
	if got, err := other.Intents.Transfer(t.Context(), intent.AccountID, intent.ID); err != nil || got.Status != transfer.Created {
		t.Errorf("the stored intent: %+v, %v", got, err)
	}
}
