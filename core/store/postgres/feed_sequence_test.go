package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
)

// resubmit writes further events of an intent: a client reports one transaction after the other.
func resubmit(tb testing.TB, store *postgres.Store, intent *transfer.Intent, times int) {
	tb.Helper()
	for range times {
		_, err := store.Transition(tb.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x1"})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Pruning keeps the newest event of an intent, so that the next has the next sequence, and removes it with the one after it.
func TestSequence_AfterPruning(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), insertAccount(t, store, "ann@example.com").ID
	intent := insertIntent(t, store, known, ann, transferBody)
	resubmit(t, store, intent, 2)
	keep := postgres.Retention{Events: 48 * time.Hour}
	prune := func(wantEvents int) {
		t.Helper()
		assignPositions(t, store)
		pgtest.Exec(t, store, `UPDATE feed SET position = position - 100 * 86400000000`)
		if _, err := store.Prune(t.Context(), now(), keep); err != nil {
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
	assignPositions(t, store)
	events, next := readFeed(t, store, testFeed(ann), 0)
	if diff := cmp.Diff([]string{"transfer.submitted 4", "transfer.submitted 5"}, steps(events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	prune(1)
	// A reader at the newest position has missed nothing; one before has.
	pruned := pgtest.LookUp[int64](t, store, `SELECT position FROM feed_pruned WHERE account_id = $1 AND environment = 'test'`, ann)
	if _, err := store.EventPage(t.Context(), testFeed(ann), max(next, pruned), noFilter, 10); err != nil {
		t.Error(err)
	}
	if _, err := store.EventPage(t.Context(), testFeed(ann), pruned-1, noFilter, 10); err != postgres.ErrFeedCursorExpired { //nolint:errorlint // the value itself
		t.Errorf("before what is kept: %v", err)
	}
	if page, err := store.EventPage(t.Context(), testFeed(ann), 0, noFilter, 10); err != nil || page.Next < pruned {
		t.Errorf("from the beginning: %+v, %v", page, err)
	}
}

// The newest position is never beyond what is kept, however long ago it was given.
func TestPrune_QuietFeed(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), insertAccount(t, store, "ann@example.com").ID
	insertIntent(t, store, known, ann, transferBody)
	assignPositions(t, store)
	_, next := readFeed(t, store, testFeed(ann), 0)
	if _, err := store.Prune(t.Context(), now().AddDate(1, 0, 0), postgres.Retention{Events: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if page, err := store.EventPage(t.Context(), testFeed(ann), next, noFilter, 10); err != nil || len(page.Events) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// A cursor expires with the first event after it that was removed of its own feed: an account that was quiet for longer than events
// are kept has missed nothing, also while old rows are being removed.
func TestEventPage_QuietAccount(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	quiet, busy := insertAccount(t, store, "ann@example.com").ID, insertAccount(t, store, "bob@example.com").ID
	insertIntent(t, store, known, quiet, transferBody)
	insertIntent(t, store, known, busy, transferBody)
	assignPositions(t, store)
	_, cursor := readFeed(t, store, testFeed(quiet), 0)
	insertIntent(t, store, known, busy, transferBody)
	insertIntent(t, store, known, busy, transferBody)
	assignPositions(t, store)
	keep := postgres.Retention{Events: 48 * time.Hour}
	if _, err := store.Prune(t.Context(), now().AddDate(0, 0, 10), keep); err != nil {
		t.Fatal(err)
	}
	read := func(owner uuid.UUID, after int64) (postgres.EventPage, error) {
		return store.EventPage(t.Context(), testFeed(owner), after, noFilter, 10)
	}
	if page, err := read(quiet, cursor); err != nil || len(page.Events) != 0 || page.Next <= cursor {
		t.Errorf("the quiet account: %+v, %v", page, err)
	}
	if _, err := read(busy, cursor); !errors.Is(err, postgres.ErrFeedCursorExpired) {
		t.Errorf("the busy account: %v", err)
	}
	if _, err := read(quiet, 1); !errors.Is(err, postgres.ErrFeedCursorExpired) {
		t.Errorf("before its own event: %v", err)
	}
	insertIntent(t, store, known, quiet, transferBody)
	assignPositions(t, store)
	if page, err := read(quiet, cursor); err != nil || len(page.Events) != 1 {
		t.Errorf("the quiet account's next event: %+v, %v", page, err)
	}
}
