package feed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
)

// unread is what feed_state waits for.
func unread(tb testing.TB, store *rooms.Rooms) string {
	tb.Helper()
	return pgtest.LookUp[string](tb, store, `SELECT unread::text FROM feed_state`)
}

// span is what is left where every id up to the newest has its position.
func span(tb testing.TB, store *rooms.Rooms) string {
	tb.Helper()
	return fmt.Sprintf("{[%d,)}", 1+pgtest.LookUp[int64](tb, store, `SELECT max(id) FROM events`))
}

// settles waits until no gap is left, for which further events are needed. Transactions of other tests on the server hold it up.
func settles(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID) {
	tb.Helper()
	asynctest.Eventually(tb, "no id is waited for", func() bool {
		pgtest.InsertTransfer(tb, store, known, owner, pgtest.TransferBody)
		pgtest.AssignPositions(tb, store)
		return unread(tb, store) == span(tb, store)
	})
}

// cancelLater cancels an intent in a transaction that stays open until end is called with its error, nil to commit.
func cancelLater(tb testing.TB, store *rooms.Rooms, intent *transfer.Intent) (end func(error)) {
	tb.Helper()
	written, ended, done := make(chan struct{}), make(chan error), make(chan error, 1)
	go func() {
		done <- store.Intents.InTx(context.WithoutCancel(tb.Context()), postgres.NoTurn, func(ctx context.Context, tx intents.Tx) error {
			locked, err := tx.LockTransfer(ctx, intent.AccountID, intent.ID)
			if err == nil {
				_, err = tx.Apply(ctx, locked, transfer.Command{Trigger: transfer.Cancel})
			}
			close(written)
			return errors.Join(err, <-ended)
		})
	}()
	<-written
	return func(err error) {
		tb.Helper()
		ended <- err
		if got := <-done; !errors.Is(got, err) {
			tb.Fatal(got)
		}
	}
}

var errRolledBack = errors.New("rolled back")

// An event whose transaction commits after later ones gets its position then, and a reader that is past those gets it too.
func TestAssignPositions_LateCommit(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	first := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	end := cancelLater(t, store, first)
	var last *transfer.Intent
	for range 5 {
		last = pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
		pgtest.AssignPositions(t, store) // the gap must outlast rounds in which other transactions have ended
	}
	events, next := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if len(events) != 6 {
		t.Errorf("%d events before the commit: %v", len(events), pgtest.Steps(events))
	}
	if waiting := unread(t, store); waiting == span(t, store) {
		t.Errorf("the gap is given up: %s", waiting)
	}
	end(nil)
	status, err := store.Feed.Status(t.Context())
	if err != nil || !status.Unread {
		t.Errorf("%+v, %v", status, err)
	}
	pgtest.AssignPositions(t, store)
	events, _ = pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), next)
	if diff := cmp.Diff([]string{"transfer.cancelled 2"}, pgtest.Steps(events)); diff != "" || events[0].Transfer.Summary.ID != first.ID {
		t.Errorf("after the commit (-want +got):\n%s", diff)
	}
	pgtest.CancelTransfer(t, store, last)
	settles(t, store, known, first.AccountID)
}

// The ids of a transaction that was rolled back are waited for no longer than other transactions that may have them.
func TestAssignPositions_RolledBack(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	gone, late := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody), pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	cancelLater(t, store, gone)(errRolledBack)
	end := cancelLater(t, store, late)
	another := func() {
		pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
		pgtest.AssignPositions(t, store)
	}
	for range 3 {
		another()
	}
	if waiting := unread(t, store); waiting == span(t, store) {
		t.Errorf("the open transaction is not waited for: %s", waiting)
	}
	end(errRolledBack)
	settles(t, store, known, ann)
	if status, err := store.Feed.Status(t.Context()); err != nil || status.Unread {
		t.Errorf("%+v, %v", status, err)
	}
}

// Transaction ids of another cluster say nothing: after a crash the note is taken again, and neither loses an event nor waits for ever.
func TestAssignPositions_AnotherCluster(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	first, second := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody), pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	cancelLater(t, store, first)(errRolledBack)
	end := cancelLater(t, store, second)
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	// As from a cluster whose ids are far ahead, and from one whose ids are far behind.
	for _, xid := range []string{"1000000000000", "3"} {
		pgtest.Exec(t, store, `UPDATE feed_state SET cluster = '1.00000001.1', checked_xid = ($1::text)::xid8, checked_id = 1000000`, xid)
		pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
		pgtest.AssignPositions(t, store)
		if waiting := unread(t, store); waiting == span(t, store) {
			t.Fatalf("the open transaction is not waited for: %s", waiting)
		}
	}
	end(nil)
	settles(t, store, known, ann)
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM events`); len(events) != n {
		t.Errorf("%d events in the feed, %d written", len(events), n)
	}
}

// Positions are above those of before a backup was restored, as they follow the clock.
func TestAssignPositions_RestoredBackup(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	_, next := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	pgtest.Exec(t, store, `DELETE FROM feed`)
	pgtest.Exec(t, store, `UPDATE feed_state SET last_position = 0, unread = DEFAULT, checked_id = NULL, checked_xid = NULL, cluster = NULL`)
	pgtest.AssignPositions(t, store)
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	if events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), next); len(events) != 2 {
		t.Errorf("%d events after the restored ones got positions again, want both", len(events))
	}
}

// Whatever order transactions commit in, and whichever core gives positions, every reader gets every event once, in one order, and those of one
// intent in theirs.
func TestAssignPositions_Concurrent(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, other := pgtest.Open(t, url), pgtest.Open(t, url)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	const writers, rounds = 6, 25
	var running, giving sync.WaitGroup
	var written atomic.Int64
	for n := range writers {
		running.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(n), 7))
			for range rounds {
				intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
				written.Add(1)
				if chance.IntN(3) == 0 {
					cancelLater(t, store, intent)(errRolledBack)
				}
				end := cancelLater(t, store, intent)
				for range chance.IntN(3) { // others write later ids meanwhile
					pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
					written.Add(1)
				}
				end(nil)
				written.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	for _, giver := range []*feed.Store{store.Feed, other.Feed} {
		giving.Go(func() {
			for {
				if _, err := giver.AssignPositions(t.Context(), false, false); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	read := make([][]feed.Event, 3)
	for n := range read {
		giving.Go(func() {
			for after := int64(0); ; {
				ending := false
				select {
				case <-stop:
					ending = true
				default:
				}
				events, next := pgtest.ReadFeed(t, other, pgtest.TestFeed(ann), after)
				read[n], after = append(read[n], events...), next
				if ending {
					return
				}
			}
		})
	}
	running.Wait()
	pgtest.AssignPositions(t, store)
	close(stop)
	giving.Wait()
	everything, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	if len(everything) != int(written.Load()) {
		t.Errorf("%d events in the feed, %d written", len(everything), written.Load())
	}
	last := map[feed.ID]bool{}
	sequences := map[string]int{}
	for _, e := range everything {
		if last[e.ID] {
			t.Errorf("%s is there twice", e.ID)
		}
		last[e.ID] = true
		intent := e.Transfer.Summary.ID.String()
		if sequences[intent]++; sequences[intent] != e.Sequence {
			t.Errorf("event %d of %s has the sequence %d", sequences[intent], intent, e.Sequence)
		}
	}
	for n, events := range read {
		if !slices.EqualFunc(events, everything, func(a, b feed.Event) bool { return a.ID == b.ID && a.Position == b.Position }) {
			t.Errorf("reader %d got %d events, not the %d of the feed in their order", n, len(events), len(everything))
		}
	}
}
