package intents_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
)

// Batches of one account that wait for a row have one of a core's places, and another account's batch has the other.
func TestInsertBatch_Share(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner, stranger := uuid.New(), uuid.New()
	insert := func(account uuid.UUID) (bool, error) { return insertBatch(t.Context(), t, store, known, account) }
	row := pgtest.Lock(t, store, `INSERT INTO batches (account_id, id, key_id, environment, idempotency_key, count, created_at)
		VALUES ($1, gen_random_uuid(), gen_random_uuid(), 'test', 'payroll', 1, now())`, owner)
	var waiting sync.WaitGroup
	var made, failed atomic.Int64
	for range 4 {
		waiting.Go(func() {
			switch inserted, err := insert(owner); {
			case err != nil:
				failed.Add(1)
			case inserted:
				made.Add(1)
			}
		})
	}
	asynctest.Eventually(t, "a batch waits for the row", func() bool {
		return pgtest.LookUp[int](t, store, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	if inserted, err := insert(stranger); err != nil || !inserted {
		t.Errorf("a stranger's batch: %v, %v", inserted, err)
	}
	pgtest.Must(t, row.Rollback())
	waiting.Wait()
	if made.Load() != 1 {
		t.Errorf("one key has made %d batches, %d requests failed", made.Load(), failed.Load())
	}
}

// insertBatch stores a batch of two intents.
func insertBatch(ctx context.Context, t *testing.T, store *rooms.Rooms, known *registry.Snapshot, account uuid.UUID) (inserted bool, err error) {
	t.Helper()
	drafts := []*transfer.Intent{pgtest.NewIntent(t, known, account, pgtest.TransferBody), pgtest.NewIntent(t, known, account, pgtest.BridgeBody)}
	batch := &intents.Batch{ID: transfer.NewID(time.Now()), AccountID: account, KeyID: drafts[0].KeyID, Environment: drafts[0].Environment, Count: len(drafts)}
	return store.Intents.InsertBatch(ctx, batch, "payroll", drafts)
}

// A batch whose caller leaves in its COMMIT is stored whole or not at all: not where the error says so. A single intent does not wait for it.
func TestInsertBatch_CallerLeaves(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	block := pgtest.BlockCommits(t, store, "batches")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := insertBatch(ctx, t, store, known, owner)
		done <- err
	}()
	block.Await(t, 1)
	pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	cancel()
	first := <-done
	if first == nil {
		t.Error("a batch is stored whose COMMIT has not returned")
	}
	block.Release(t)
	inserted, err := insertBatch(t.Context(), t, store, known, owner)
	if err != nil {
		t.Fatal(err)
	}
	batches, items := pgtest.LookUp[int](t, store, `SELECT count(*) FROM batches`), pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers WHERE batch_id IS NOT NULL`)
	if batches != 1 || items != 2 {
		t.Errorf("inserted again %v: %d batches of %d intents", inserted, batches, items)
	}
	if !inserted && !postgres.IsOutcomeUnknown(first) {
		t.Errorf("the first is stored, and its error says that it is not: %v", first)
	}
}
