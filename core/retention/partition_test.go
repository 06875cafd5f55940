package retention_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// The SQL of CAPACITY.md runs on this schema and loses nothing; afterwards intents are made, settled and read, each in one partition.
func TestStore_PartitionedByAccount(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, store)
	ann := pgtest.SignUp(t, store, "ann@example.com").ID
	once := pgtest.Idempotent(t, "once", pgtest.SwapBody)
	insert := func() *transfer.Intent {
		t.Helper()
		made, err := store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, ann, pgtest.SwapBody), once)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := insert()
	before := pgtest.List(t, store, ann, intents.TransferFilter{})
	partition(t, plain)

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
	for name, filter := range map[string]intents.TransferFilter{
		"all": {}, "type": {Type: transfer.Swap}, "statuses": {Statuses: []transfer.Status{transfer.Created, transfer.Cancelled}},
		"chain": {Chain: caip.EIP155Chain(11155111)}, "order": {OrderID: &first.OrderID}, "reference": {Reference: "inv-42"},
		"updated since": {UpdatedSince: time.Now().Add(-time.Hour)}, "page": {Limit: 1, After: &intents.KeysetCursor{ID: first.ID}},
	} {
		if diff := cmp.Diff(before, pgtest.List(t, store, ann, filter)); diff != "" && name != "page" {
			t.Errorf("list by %s (-before +partitioned):\n%s", name, diff)
		}
		bound("list by " + name)
	}
	if again := insert(); again.ID != first.ID {
		t.Errorf("the idempotency key of before gives %s, want %s", again.ID, first.ID)
	}
	bound("insert")
	_, settled := store.Intents.Transition(t.Context(), ann, first.ID, transfer.Command{Trigger: transfer.Cancel})
	bound("cancel")
	_, read := store.Intents.TransferByOrder(t.Context(), ann, first.OrderID)
	bound("look-up")
	events, listed := store.Intents.Events(t.Context(), ann, first.ID)
	bound("events")
	if err := errors.Join(settled, read, listed); err != nil || len(events) != 2 {
		t.Errorf("%d events, %v", len(events), err)
	}
	pgtest.AssignPositions(t, store)
	asked.Take()
	fed, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if diff := cmp.Diff([]string{"transfer.created 1", "transfer.cancelled 2"}, pgtest.Steps(fed)); diff != "" {
		t.Errorf("the feed (-want +got):\n%s", diff)
	}
	bound("the feed")
}
