package postgres_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

const (
	// propertyTime is how long the test runs at least. It runs until both cores have read enough lists from both servers.
	propertyTime = 3 * time.Second
	enough       = 20
	// propertyAccounts write now and then, each by one goroutine, so that it knows what it must see.
	propertyAccounts = 6
)

// Each list has every change that any core acknowledged to its account before, whatever the replica does, and an account that a
// change check reports as unchanged has not changed.
func TestReplica_ReadYourWritesProperty(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var work sync.WaitGroup
	var over atomic.Bool
	for range propertyAccounts {
		work.Go(func() {
			reader := reader{stage: s, owner: uuid.New(), acknowledged: map[uuid.UUID]transfer.Status{}}
			for !over.Load() && !t.Failed() {
				reader.step(t)
			}
		})
	}
	s.disturb(t)
	over.Store(true)
	work.Wait()
	if s.a.fellBack(t, "changed")+s.b.fellBack(t, "changed") == 0 {
		t.Error("no account was ever ahead of the replica")
	}
	for name, core := range map[string]*follower{"a": s.a, "b": s.b} {
		replica, primary := core.from(t, "replica"), core.from(t, "primary")
		t.Logf("core %s read %v lists from the replica and %v from the primary", name, replica, primary)
		if replica < enough || primary < enough {
			t.Errorf("core %s: the test shows nothing of both", name)
		}
	}
}

// disturb pauses and resumes replaying at random.
func (s stage) disturb(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(150 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < time.Minute && !t.Failed(); <-ticker.C {
		if time.Since(began) > propertyTime && s.a.readEnough(t) && s.b.readEnough(t) {
			return
		}
		statement := `SELECT pg_wal_replay_pause()`
		if rand.IntN(2) == 0 {
			statement = `SELECT pg_wal_replay_resume()`
		}
		if _, err := s.standby.Pool().ExecContext(t.Context(), statement); err != nil {
			t.Error(err)
		}
	}
}

// readEnough reports whether the core has read enough lists of both servers for a test to show something.
func (f *follower) readEnough(t *testing.T) bool {
	t.Helper()
	return f.from(t, "replica") >= enough && f.from(t, "primary") >= enough && f.fellBack(t, "changed") > 0
}

// reader is an account that knows what was acknowledged to it.
type reader struct {
	stage

	owner        uuid.UUID
	acknowledged map[uuid.UUID]transfer.Status
	// cursor is that of the last list, and seen how many changes were acknowledged before it.
	cursor        string
	changes, seen int
}

// step makes or cancels an intent sometimes, and then lists, each by a core of its own choice.
func (r *reader) step(t *testing.T) {
	t.Helper()
	core := func() *rooms.Rooms { return []*follower{r.a, r.b}[rand.IntN(2)].Rooms }
	// Seldom enough that lists come from the replica in between.
	switch rand.IntN(150) {
	case 0:
		made, err := core().Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, r.known, r.owner, pgtest.TransferBody), intents.Idempotency{})
		if err != nil {
			t.Error(err)
			return
		}
		r.acknowledged[made.ID] = made.Status
		r.changes++
	case 1:
		for id, status := range r.acknowledged {
			if status == transfer.Created {
				if _, err := core().Intents.Transition(t.Context(), r.owner, id, transfer.Command{Trigger: transfer.Cancel}); err != nil {
					t.Error(err)
				}
				r.acknowledged[id] = transfer.Cancelled
				r.changes++
				break
			}
		}
	}
	r.list(t, core())
}

// list reads as GET /v2/transfers does, or as its pages are.
func (r *reader) list(t *testing.T, core *rooms.Rooms) {
	t.Helper()
	listed := core.Intents.Transfers(t.Context(), r.owner, intents.TransferFilter{})
	if rand.IntN(2) == 0 {
		check, err := core.Intents.CheckChanges(t.Context(), r.owner, r.cursor, time.Now())
		if err != nil {
			t.Error(err)
			return
		}
		if !check.Changed && r.seen < r.changes {
			t.Errorf("a list without the last %d changes is called unchanged", r.changes-r.seen)
		}
		r.cursor, r.seen = check.Cursor, r.changes
		listed = core.Intents.TransfersAfterCheck(t.Context(), r.owner, intents.TransferFilter{}, check)
	}
	var ids []uuid.UUID
	for summary, err := range listed {
		if err != nil {
			t.Error(err)
			return
		}
		ids = append(ids, summary.ID)
		if want := r.acknowledged[summary.ID]; summary.Status != want {
			t.Errorf("intent %s is listed as %s after it was acknowledged as %q", summary.ID, summary.Status, want)
		}
	}
	for id := range r.acknowledged {
		if !slices.Contains(ids, id) {
			t.Errorf("intent %s is not in the list after it was acknowledged", id)
		}
	}
}
