package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
)

// list reads a whole list.
func list(t *testing.T, store *postgres.Store, owner uuid.UUID, filter postgres.TransferFilter) []transfer.Summary {
	t.Helper()
	var summaries []transfer.Summary
	for summary, err := range store.Transfers(t.Context(), owner, filter) {
		if err != nil {
			t.Fatal(err)
		}
		summaries = append(summaries, summary)
	}
	return summaries
}

// multiply makes count copies of the one intent, each a millisecond older than the one before.
func multiply(tb testing.TB, store *postgres.Store, id uuid.UUID, count int) {
	tb.Helper()
	pgtest.Exec(tb, store, `INSERT INTO transfers SELECT (jsonb_populate_record(i, jsonb_build_object(
		'id', (lpad(to_hex(1700000000000 - n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
		'order_id', sha256(n::text::bytea)))).* FROM transfers i, generate_series(1, $1) n WHERE i.id = $2`, count, id.String())
}

// BenchmarkTransfers reads a page of 100, and a batch of a list as everyone begins with who asks for a long one. The time includes
// Postgres's.
func BenchmarkTransfers(b *testing.B) {
	store := pgtest.New(b)
	owner := uuid.New()
	multiply(b, store, insertIntent(b, store, pgtest.LoadRegistry(b, store), owner, transferBody).ID, 1001)
	for _, rows := range []int{100, 1001} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range store.Transfers(b.Context(), owner, postgres.TransferFilter{Limit: rows}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func TestTransfers_SeveralBatches(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	for _, total := range []int{1, 1000, 1001, 1002, 2500} {
		pgtest.Exec(t, store, `TRUNCATE transfers`)
		newest := insertIntent(t, store, known, owner, transferBody)
		insertIntent(t, store, known, uuid.New(), transferBody)
		multiply(t, store, newest.ID, total-1)
		got := list(t, store, owner, postgres.TransferFilter{})
		if len(got) != total {
			t.Errorf("%d of %d intents listed", len(got), total)
		}
		if diff := cmp.Diff(newest.Summary(), got[0]); diff != "" {
			t.Errorf("the first is not the newest (-want +got):\n%s", diff)
		}
		newestFirst := func(a, b transfer.Summary) int { return -slices.Compare(a.ID[:], b.ID[:]) }
		if !slices.IsSortedFunc(got, newestFirst) {
			t.Error("the list is out of order")
		}
		if distinct := len(slices.CompactFunc(got, func(a, b transfer.Summary) bool { return a.ID == b.ID })); distinct != total {
			t.Errorf("%d distinct intents of %d", distinct, total)
		}
	}
}

func TestTransfers_ByType(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann, bob := uuid.New(), uuid.New()
	made := map[transfer.Type][]transfer.Summary{}
	var all []transfer.Summary
	for _, body := range []string{transferBody, swapBody, bridgeBody, swapBody, transferBody, transferBody} {
		summary := insertIntent(t, store, known, ann, body).Summary()
		made[summary.Type] = slices.Insert(made[summary.Type], 0, summary)
		all = slices.Insert(all, 0, summary)
		insertIntent(t, store, known, bob, body)
	}
	made[""] = all
	for kind, want := range made {
		if diff := cmp.Diff(want, list(t, store, ann, postgres.TransferFilter{Type: kind})); diff != "" {
			t.Errorf("type %q (-want +got):\n%s", kind, diff)
		}
	}
	if got := list(t, store, uuid.New(), postgres.TransferFilter{}); len(got) != 0 {
		t.Errorf("an account without intents has %d", len(got))
	}
}

func TestTransfers_Summary(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	intent, err := store.Transition(t.Context(), owner, insertIntent(t, store, known, owner, bridgeBody).ID,
		transfer.Command{Trigger: transfer.Submit, Hash: "0xabc"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]transfer.Summary{intent.Summary()}, list(t, store, intent.AccountID, postgres.TransferFilter{})); diff != "" {
		t.Errorf("list differs (-want +got):\n%s", diff)
	}
}

// A page of 1,000 asks for one more, and so does a list that is held up to there before it is streamed.
func TestTransfers_LongestPage(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	owner := uuid.New()
	multiply(t, store, insertIntent(t, store, pgtest.LoadRegistry(t, store), owner, transferBody).ID, 1500)
	seen := 0
	for _, err := range store.Transfers(t.Context(), owner, postgres.TransferFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1001 {
			break
		}
	}
	if batches := values()["intents_core_list_batches_total primary"]; seen != 1001 || batches != 1 {
		t.Errorf("%d intents were read in %v batches, want 1001 in one", seen, batches)
	}
}

func TestTransfers_Stop(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	multiply(t, store, insertIntent(t, store, known, owner, transferBody).ID, 1500)

	seen := 0
	for _, err := range store.Transfers(t.Context(), owner, postgres.TransferFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("a reader that leaves after 3 is given %d", seen)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen = 0
	var last error
	for _, err := range store.Transfers(ctx, owner, postgres.TransferFilter{}) {
		if last != nil {
			t.Error("the list goes on after its error")
		}
		if last = err; err == nil {
			seen++
			cancel()
		}
	}
	if seen != 1001 || !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled in the first batch: %d intents, then %v", seen, last)
	}
	if held := store.Pool().Stats().InUse; held != 0 {
		t.Errorf("%d connections are still held", held)
	}
}

// A row that cannot be read is an error, and its connection serves the next list.
func TestTransfers_Unreadable(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner := uuid.New()
	intent := insertIntent(t, store, pgtest.LoadRegistry(t, store), owner, transferBody)
	multiply(t, store, intent.ID, 10)
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = 'infinity' WHERE id = $1`, intent.ID.String())
	for range 20 {
		for _, err := range store.Transfers(t.Context(), owner, postgres.TransferFilter{}) {
			if err == nil || !strings.Contains(err.Error(), intent.ID.String()) {
				t.Fatalf("the error is %v", err)
			}
		}
	}
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = created_at WHERE id = $1`, intent.ID.String())
	if got := list(t, store, owner, postgres.TransferFilter{}); len(got) != 11 {
		t.Errorf("%d intents listed", len(got))
	}
}
