package feed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

// backedUp are the tables of intents and their events.
var backedUp = []string{"transfers", "events", "feed", "feed_state"}

// backup copies these tables; restore puts the copies in their place, with the sequence of events as it was.
func backup(t *testing.T, store *rooms.Rooms) (restore func()) {
	t.Helper()
	for _, table := range backedUp {
		pgtest.Exec(t, store, "CREATE TABLE backup_"+table+" AS TABLE "+table)
	}
	last := pgtest.LookUp[int64](t, store, "SELECT last_value FROM events_id_seq")
	return func() {
		t.Helper()
		for _, table := range backedUp {
			pgtest.Exec(t, store, "TRUNCATE "+table)
			pgtest.Exec(t, store, "INSERT INTO "+table+" OVERRIDING SYSTEM VALUE TABLE backup_"+table)
		}
		pgtest.Exec(t, store, "SELECT setval('events_id_seq', $1)", last)
	}
}

// After a backup was restored, an event that happens in the place of a lost one has another id: a receiver that has seen the lost one
// must not take it for a repetition. An event of the backup keeps its id, also if its position was given after the backup.
func TestFeed_IDsAfterRestore(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	first, second := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody), pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	pgtest.CancelTransfer(t, store, second)
	restore := backup(t, store)
	pgtest.CancelTransfer(t, store, first)
	pgtest.AssignPositions(t, store)
	before, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	restore()
	if _, err := store.Intents.Transition(t.Context(), ann, first.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x1"}); err != nil {
		t.Fatal(err)
	}
	pgtest.AssignPositions(t, store)
	after, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if diff := cmp.Diff([]string{"transfer.created 1", "transfer.created 1", "transfer.cancelled 2", "transfer.submitted 2"}, pgtest.Steps(after)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for n := range 3 {
		if before[n].ID != after[n].ID {
			t.Errorf("the event %d is %s and then %s", n, before[n].ID, after[n].ID)
		}
	}
	if before[3].ID == after[3].ID {
		t.Errorf("%s and %s have the id %s", before[3].Type, after[3].Type, after[3].ID)
	}
	ids := map[feed.ID]bool{}
	for _, e := range append(after, before[3]) {
		if ids[e.ID] = true; uuid.UUID(e.ID).Version() != 8 || uuid.UUID(e.ID).Variant() != uuid.RFC4122 {
			t.Errorf("%s is no UUIDv8", e.ID)
		}
	}
	if len(ids) != 5 {
		t.Errorf("%d ids of 5 events", len(ids))
	}
}
