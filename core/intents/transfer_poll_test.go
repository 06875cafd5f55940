package intents_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// pollOverlap is what the API docs tell pollers to keep.
const pollOverlap = time.Minute

// What waited for a lock while another change committed is dated after that change, so a poller that has seen the other
// change sees it too, without any overlap.
func TestTransfers_PolledAcrossLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock  string
		write func(*rooms.Rooms, *transfer.Intent) error
	}{
		"a transition waits for its row": {
			"SELECT FROM transfers WHERE deadline <= now() FOR UPDATE",
			func(store *rooms.Rooms, i *transfer.Intent) error {
				_, err := store.Intents.Transition(t.Context(), i.AccountID, i.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x01"})
				return err
			},
		},
		"an expiry waits for the table": {
			"LOCK TABLE transfers IN EXCLUSIVE MODE",
			func(store *rooms.Rooms, _ *transfer.Intent) error {
				_, err := store.Intents.ExpireTransfers(t.Context())
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := pgtest.New(t)
			known := pgtest.LoadRegistry(t, store)
			owner := uuid.New()
			seen := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
			late := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
			pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() WHERE id = $1", late.ID)
			blocker := pgtest.Lock(t, store, c.lock)
			written := make(chan error)
			go func() { written <- c.write(store, late) }()
			asynctest.Eventually(t, "the write waits for the lock", func() bool {
				return pgtest.LookUp[int](t, store, `SELECT count(*) FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
			})
			if _, err := blocker.ExecContext(t.Context(), "UPDATE transfers SET updated_at = clock_timestamp() WHERE id = $1", seen.ID.String()); err != nil {
				t.Fatal(err)
			}
			if err := blocker.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			last, err := store.Intents.Transfer(t.Context(), owner, seen.ID)
			if err != nil {
				t.Fatal(err)
			}
			var got []uuid.UUID
			for _, summary := range pgtest.List(t, store, owner, intents.TransferFilter{UpdatedSince: last.UpdatedAt}) {
				got = append(got, summary.ID)
			}
			if diff := cmp.Diff([]uuid.UUID{seen.ID, late.ID}, got); diff != "" {
				t.Errorf("polled since the change that was seen (-want +got):\n%s", diff)
			}
		})
	}
}

// However a core's clock goes and however long an intent waited to be written, it is dated by the database's clock, and
// every reader is told the same times.
func TestTransfers_PolledAcrossClocks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		seen := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
		id := uuid.Must(uuid.NewV7())
		for i, ms := 5, time.Now().Add(skew).UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
			id[i] = byte(ms)
		}
		late, err := transfer.New(id, transfer.Caller{AccountID: owner, KeyID: uuid.New(), Environment: network.Test}, pgtest.ParseRequest(t, pgtest.TransferBody), known)
		if err != nil {
			t.Fatal(err)
		}
		answered, err := store.Intents.InsertTransfer(t.Context(), late, intents.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := store.Intents.Transfer(t.Context(), owner, id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answered, stored, pgtest.Amounts); diff != "" {
			t.Errorf("%s: (-answered +stored):\n%s", name, diff)
		}
		if now := pgtest.Now(); stored.CreatedAt.After(now.Add(time.Second)) || stored.CreatedAt.Before(now.Add(-pollOverlap)) || !stored.CreatedAt.Equal(stored.UpdatedAt) {
			t.Errorf("%s: created %v, updated %v, now %v", name, stored.CreatedAt, stored.UpdatedAt, now)
		}
		polled := pgtest.List(t, store, owner, intents.TransferFilter{UpdatedSince: seen.UpdatedAt.Add(-pollOverlap)})
		if last := polled[len(polled)-1]; last.ID != id {
			t.Errorf("%s: the last of %d polled intents is not the one inserted last", name, len(polled))
		}
	}
}

// An intent that changes while its list is read in pages comes again on a later page: the reader ends with the last state
// of each, wherever the change falls.
func TestTransfers_PolledWhileChanging(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	const count = 5
	for changed := range count {
		for after := 1; after <= count; after++ { // how many intents the reader has when the change comes
			owner := uuid.New()
			var ids []uuid.UUID
			for range count {
				ids = append(ids, pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody).ID)
			}
			got, read := map[uuid.UUID]transfer.Status{}, 0
			filter := intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Limit: 1}
			for page := pgtest.List(t, store, owner, filter); len(page) > 0; page = pgtest.List(t, store, owner, filter) {
				last := page[0]
				got[last.ID] = last.Status
				if read++; read == after {
					if _, err := store.Intents.Transition(t.Context(), owner, ids[changed], transfer.Command{Trigger: transfer.Cancel}); err != nil {
						t.Fatal(err)
					}
				}
				filter.After = &intents.KeysetCursor{ID: last.ID, UpdatedAt: last.UpdatedAt}
			}
			want := map[uuid.UUID]transfer.Status{}
			for n, id := range ids {
				want[id] = transfer.Created
				if n == changed {
					want[id] = transfer.Cancelled
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("intent %d changed after %d were read (-want +got):\n%s", changed, after, diff)
			}
		}
	}
}
