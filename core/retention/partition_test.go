package retention_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

var (
	partitioningSection = regexp.MustCompile(`(?s)\n## Partitioning by account\n.*`)
	sqlBlock            = regexp.MustCompile("(?s)```sql\n(.*?)```")
	partitionOf         = regexp.MustCompile(`\bon (?:transfers|events)_(\d\d)\b`)
)

// partition runs the SQL of CAPACITY.md as it stands there, in one transaction.
func partition(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	page, err := os.ReadFile("../../deploy/CAPACITY.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := sqlBlock.FindAllSubmatch(partitioningSection.Find(page), -1)
	if len(blocks) < 6 {
		t.Fatalf("CAPACITY.md has %d blocks of SQL", len(blocks))
	}
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, block := range blocks {
		if _, err := tx.ExecContext(t.Context(), string(block[1])); err != nil {
			t.Fatalf("%s\n%v", block[1], err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// partitionsOf is which partitions a statement's plan reads or changes.
func partitionsOf(t *testing.T, store *rooms.Rooms, statement string) []string {
	t.Helper()
	rows, err := store.Pool().QueryContext(t.Context(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatalf("EXPLAIN %s: %v", statement, err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		for _, m := range partitionOf.FindAllStringSubmatch(line, -1) {
			found = append(found, m[1])
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Everything that the store does with intents works on tables that are partitioned as CAPACITY.md says, finds what was there
// before, and asks one partition where it asks for one account.
func TestStore_PartitionedByAccount(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, store)
	ann, bea := pgtest.SignUp(t, store, "ann@example.com").ID, pgtest.SignUp(t, store, "bea@example.com").ID
	cancel := transfer.Command{Trigger: transfer.Cancel}
	must := func(intent *transfer.Intent, err error) *transfer.Intent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return intent
	}
	once := pgtest.Idempotent(t, "once", pgtest.TransferBody)
	first := must(store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, ann, pgtest.TransferBody), once))
	gone := pgtest.InsertTransfer(t, store, known, ann, pgtest.SwapBody)
	must(store.Intents.Transition(t.Context(), ann, gone.ID, cancel))
	pgtest.InsertTransfer(t, store, known, bea, pgtest.BridgeBody)
	everything := func(owner uuid.UUID) []transfer.Summary {
		return pgtest.List(t, store, owner, intents.TransferFilter{})
	}
	before := map[uuid.UUID][]transfer.Summary{ann: everything(ann), bea: everything(bea)}

	partition(t, plain)
	for owner, want := range before {
		if diff := cmp.Diff(want, everything(owner)); diff != "" {
			t.Errorf("what was there before (-want +got):\n%s", diff)
		}
	}
	if n := pgtest.LookUp[int](t, plain, `SELECT count(*) FROM pg_inherits WHERE inhparent IN ('transfers'::regclass, 'events'::regclass)`); n != 128 {
		t.Errorf("%d partitions", n)
	}

	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	// bound holds what was asked since the last time to one partition.
	bound := func(what string) {
		t.Helper()
		all := asked.Take()
		if len(all) == 0 {
			t.Errorf("%s asks nothing", what)
		}
		for _, statement := range all {
			found, insert := partitionsOf(t, plain, statement), strings.Contains(statement, "INSERT INTO")
			if len(found) > 1 || len(found) == 0 && !insert {
				t.Errorf("%s touches the partitions %q:\n%s", what, found, statement)
			}
		}
	}

	// One intent of many twins, and that of before.
	again := pgtest.Idempotent(t, "again", pgtest.SwapBody)
	ids := make(chan uuid.UUID, 8)
	var twins sync.WaitGroup
	for range cap(ids) {
		intent := pgtest.NewIntent(t, known, ann, pgtest.SwapBody)
		twins.Go(func() {
			stored, err := store.Intents.InsertTransfer(t.Context(), intent, again)
			if err != nil {
				t.Error(err)
				ids <- uuid.Nil
				return
			}
			ids <- stored.ID
		})
	}
	twins.Wait()
	close(ids)
	made := <-ids
	for id := range ids {
		if id != made {
			t.Errorf("twins made %s and %s", made, id)
		}
	}
	if replayed := must(store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, ann, pgtest.TransferBody), once)); replayed.ID != first.ID {
		t.Errorf("the key of before gives %s, want %s", replayed.ID, first.ID)
	}
	bound("insert")
	must(store.Intents.Transition(t.Context(), ann, made, cancel))
	bound("cancel")
	if _, err := store.Intents.Transition(t.Context(), bea, first.ID, cancel); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("another account's: %v", err)
	}
	bound("cancel another account's")
	if _, err := store.Intents.TransferByOrder(t.Context(), bea, first.OrderID); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("another account's order: %v", err)
	}
	if got := must(store.Intents.TransferByOrder(t.Context(), ann, first.OrderID)); got.ID != first.ID {
		t.Errorf("by order id: %s", got.ID)
	}
	must(store.Intents.Transfer(t.Context(), ann, first.ID))
	bound("look-ups")
	for _, c := range []struct {
		id   uuid.UUID
		want []transfer.Status
	}{{gone.ID, []transfer.Status{transfer.Created, transfer.Cancelled}}, {made, []transfer.Status{transfer.Created, transfer.Cancelled}}} {
		events, err := store.Intents.Events(t.Context(), ann, c.id)
		var got []transfer.Status
		for _, e := range events {
			got = append(got, e.To)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("events of %s: %v (-want +got):\n%s", c.id, err, diff)
		}
	}
	bound("events")
	if _, err := store.Intents.CheckChanges(t.Context(), ann, "", time.Now()); err != nil {
		t.Error(err)
	}
	check, err := store.Intents.CheckChanges(t.Context(), ann, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asked.Take()
	if check, err = store.Intents.CheckChanges(t.Context(), ann, check.Cursor, time.Now()); err != nil || check.Changed {
		t.Errorf("changed: %t, %v", check.Changed, err)
	}
	bound("a change check")

	sepolia := caip.ChainID{Namespace: "eip155", Reference: "11155111"}
	for name, c := range map[string]struct {
		filter intents.TransferFilter
		want   int
	}{
		"all":             {intents.TransferFilter{}, 3},
		"page":            {intents.TransferFilter{Limit: 1, After: &intents.KeysetCursor{ID: made}}, 1},
		"type":            {intents.TransferFilter{Type: transfer.Swap}, 2},
		"status":          {intents.TransferFilter{Statuses: []transfer.Status{transfer.Cancelled}}, 2},
		"statuses":        {intents.TransferFilter{Statuses: []transfer.Status{transfer.Cancelled, transfer.Created}}, 3},
		"chain":           {intents.TransferFilter{Chain: sepolia}, 3},
		"order":           {intents.TransferFilter{OrderID: &first.OrderID}, 1},
		"hash":            {intents.TransferFilter{Hash: "0x1"}, 0},
		"reference":       {intents.TransferFilter{Reference: "inv-42"}, 2},
		"updated since":   {intents.TransferFilter{UpdatedSince: time.Now().Add(-time.Hour)}, 3},
		"... from cursor": {intents.TransferFilter{UpdatedSince: time.Now().Add(-time.Hour), After: &intents.KeysetCursor{ID: gone.ID, UpdatedAt: time.Now()}}, -1},
	} {
		if got := pgtest.List(t, store, ann, c.filter); len(got) != c.want && c.want >= 0 {
			t.Errorf("list by %s: %d, want %d", name, len(got), c.want)
		}
		bound("list by " + name)
	}

	// The feed is given and pruned for all accounts, and read for one.
	pgtest.AssignPositions(t, store)
	asked.Take()
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if diff := cmp.Diff([]string{
		"transfer.created 1", "transfer.created 1", "transfer.cancelled 2", "transfer.created 1", "transfer.cancelled 2",
	}, pgtest.Steps(events)); diff != "" {
		t.Errorf("the feed (-want +got):\n%s", diff)
	}
	bound("the feed")
	if again, err := store.Feed.EventsAt(t.Context(), []int64{events[0].Position}); err != nil || len(again) != 1 {
		t.Errorf("%d events at a position, %v", len(again), err)
	}
	asked.Take() // it is of any account, and passes over the other partitions when it runs

	// Expiry is for all accounts: it uses its index on every partition, and changes each intent in its own.
	pgtest.Exec(t, plain, `UPDATE transfers SET created_at = created_at - interval '2 h', deadline = now() - interval '1 s' WHERE status = 'created'`)
	if n, err := store.Intents.ExpireTransfers(t.Context()); n != 2 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	pgtest.AssignPositions(t, store)
	for _, statement := range asked.Take() {
		if plan := pgtest.PlanWithoutSeqScan(t, plain, statement); strings.Contains(plan, "Seq Scan on transfers") || strings.Contains(plan, "Seq Scan on events") {
			t.Errorf("expiry or the feed has no index for\n%s\n%s", statement, plan)
		}
	}
	if err := store.Intents.ReadExpiryLag(t.Context()); err != nil {
		t.Error(err)
	}
}
