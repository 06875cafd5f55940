package intents_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
)

// BenchmarkTransfers reads a page of 100, and a batch of a list as everyone begins with who asks for a long one. The time includes
// Postgres's.
func BenchmarkTransfers(b *testing.B) {
	store := pgtest.New(b)
	owner := uuid.New()
	pgtest.Multiply(b, store, pgtest.InsertTransfer(b, store, pgtest.LoadRegistry(b, store), owner, pgtest.TransferBody).ID, 1001)
	for _, rows := range []int{100, 1001} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range store.Intents.Transfers(b.Context(), owner, intents.TransferFilter{Limit: rows}) {
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
		newest := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
		pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
		pgtest.Multiply(t, store, newest.ID, total-1)
		got := pgtest.List(t, store, owner, intents.TransferFilter{})
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

// A page of 1,000 asks for one more, and so does a list that is held up to there before it is streamed.
func TestTransfers_LongestPage(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	owner := uuid.New()
	pgtest.Multiply(t, store, pgtest.InsertTransfer(t, store, pgtest.LoadRegistry(t, store), owner, pgtest.TransferBody).ID, 1500)
	seen := 0
	for _, err := range store.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
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
	pgtest.Multiply(t, store, pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody).ID, 1500)

	seen := 0
	for _, err := range store.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
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
	for _, err := range store.Intents.Transfers(ctx, owner, intents.TransferFilter{}) {
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
	intent := pgtest.InsertTransfer(t, store, pgtest.LoadRegistry(t, store), owner, pgtest.TransferBody)
	pgtest.Multiply(t, store, intent.ID, 10)
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = 'infinity' WHERE id = $1`, intent.ID.String())
	for range 20 {
		for _, err := range store.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
			if err == nil || !strings.Contains(err.Error(), intent.ID.String()) {
				t.Fatalf("the error is %v", err)
			}
		}
	}
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = created_at WHERE id = $1`, intent.ID.String())
	if got := pgtest.List(t, store, owner, intents.TransferFilter{}); len(got) != 11 {
		t.Errorf("%d intents listed", len(got))
	}
}
