package feed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

// resubmit writes further events of an intent: a client reports one transaction after the other.
func resubmit(tb testing.TB, store *rooms.Rooms, intent *transfer.Intent, times int) {
	tb.Helper()
	for range times {
		_, err := store.Intents.Transition(tb.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x1"})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Pruning keeps the newest event of an intent, so that the next has the next sequence, and removes it with the one after it.
func TestSequence_AfterPruning(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	resubmit(t, store, intent, 2)
	keep := retention.Retention{Events: 48 * time.Hour}
	prune := func(wantEvents int) {
		t.Helper()
		pgtest.AssignPositions(t, store)
		pgtest.Exec(t, store, `UPDATE feed SET position = position - 100 * 86400000000`)
		if _, err := store.Retention.Prune(t.Context(), pgtest.Now(), keep); err != nil {
			t.Fatal(err)
		}
		if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM events`); n != wantEvents {
			t.Errorf("%d events are left, want %d", n, wantEvents)
		}
		if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM feed`); n != 0 {
			t.Errorf("%d rows of the feed are left", n)
		}
	}
	prune(1)
	resubmit(t, store, intent, 2)
	pgtest.AssignPositions(t, store)
	read, next := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if diff := cmp.Diff([]string{"transfer.submitted 4", "transfer.submitted 5"}, pgtest.Steps(read)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	prune(1)
	// A reader at the newest position has missed nothing; one before has.
	pruned := pgtest.LookUp[int64](t, store, `SELECT position FROM feed_pruned WHERE account_id = $1 AND environment = 'test'`, ann)
	if _, err := store.Feed.EventPage(t.Context(), pgtest.TestFeed(ann), max(next, pruned), feed.Filter{}, 10); err != nil {
		t.Error(err)
	}
	if _, err := store.Feed.EventPage(t.Context(), pgtest.TestFeed(ann), pruned-1, feed.Filter{}, 10); err != feed.ErrCursorExpired { //nolint:errorlint // the value itself
		t.Errorf("before what is kept: %v", err)
	}
	if page, err := store.Feed.EventPage(t.Context(), pgtest.TestFeed(ann), 0, feed.Filter{}, 10); err != nil || page.Next < pruned {
		t.Errorf("from the beginning: %+v, %v", page, err)
	}
}

// A cursor expires with the first event after it that was removed of its own feed: an account that was quiet for longer than events
// are kept has missed nothing, also while old rows are being removed.
func TestEventPage_QuietAccount(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	quiet, busy := pgtest.SignUp(t, store, "ann@example.com").ID, pgtest.SignUp(t, store, "bob@example.com").ID
	pgtest.InsertTransfer(t, store, known, quiet, pgtest.TransferBody)
	pgtest.InsertTransfer(t, store, known, busy, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	_, cursor := pgtest.ReadFeed(t, store, pgtest.TestFeed(quiet), 0)
	pgtest.InsertTransfer(t, store, known, busy, pgtest.TransferBody)
	pgtest.InsertTransfer(t, store, known, busy, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	keep := retention.Retention{Events: 48 * time.Hour}
	if _, err := store.Retention.Prune(t.Context(), pgtest.Now().AddDate(0, 0, 10), keep); err != nil {
		t.Fatal(err)
	}
	read := func(owner uuid.UUID, after int64) (feed.EventPage, error) {
		return store.Feed.EventPage(t.Context(), pgtest.TestFeed(owner), after, feed.Filter{}, 10)
	}
	page, err := read(quiet, cursor)
	if err != nil || len(page.Events) != 0 || page.Next <= cursor {
		t.Errorf("the quiet account: %+v, %v", page, err)
	}
	// The newest position is never beyond what is kept, however long ago it was given.
	if end, err := read(busy, page.Next); err != nil || len(end.Events) > 0 {
		t.Errorf("the newest position: %+v, %v", end, err)
	}
	if _, err := read(busy, cursor); !errors.Is(err, feed.ErrCursorExpired) {
		t.Errorf("the busy account: %v", err)
	}
	if _, err := read(quiet, 1); !errors.Is(err, feed.ErrCursorExpired) {
		t.Errorf("before its own event: %v", err)
	}
	pgtest.InsertTransfer(t, store, known, quiet, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	if page, err := read(quiet, cursor); err != nil || len(page.Events) != 1 {
		t.Errorf("the quiet account's next event: %+v, %v", page, err)
	}
}
