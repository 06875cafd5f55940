package intents_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
)

// unknown returns the error that says that a write may be stored, nil for another one.
func unknown(err error) *postgres.OutcomeUnknownError {
	found, _ := errors.AsType[*postgres.OutcomeUnknownError](err)
	return found
}

// Of the callers who leave while the database stalls, those whose rows were sent to it are told that these may be stored, and the
// others that they are not: their rows are never written, however long the stall lasts.
func TestInsertTransfer_CallersLeave(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, watcher := pgtest.Open(t, url), pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, watcher)
	block := pgtest.BlockCommits(t, watcher, "transfers")
	const flushers, queued = 2, 20
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	sent := make([]*transfer.Intent, flushers+queued)
	outcomes := make([]error, len(sent))
	var callers sync.WaitGroup
	for n := range sent {
		sent[n] = pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
		idempotency := intents.Idempotency{}
		if n%2 == 1 {
			idempotency = pgtest.Idempotent(t, fmt.Sprint(n), pgtest.TransferBody)
		}
		callers.Go(func() { _, outcomes[n] = store.Intents.InsertTransfer(ctx, sent[n], idempotency) })
		if n < flushers {
			block.Await(t, n+1)
		}
	}
	asynctest.Eventually(t, "the other inserts are queued", func() bool { return intents.InsertsWaiting(store.Intents) == queued })
	leave()
	callers.Wait()
	if n := intents.InsertsWaiting(store.Intents); n != 0 {
		t.Errorf("%d inserts without a caller are queued", n)
	}
	block.Release(t)
	if err := store.Close(); err != nil { // after the flushers have ended
		t.Fatal(err)
	}
	for n, intent := range sent {
		_, err := watcher.Intents.Transfer(t.Context(), intent.AccountID, intent.ID)
		stored := !errors.Is(err, intents.ErrTransferNotFound)
		told := unknown(outcomes[n])
		if n < flushers && (told == nil || told.Repeatable != (n%2 == 1) || !stored) {
			t.Errorf("caller %d, whose row was sent, is told %v; stored: %t", n, outcomes[n], stored)
		}
		if n >= flushers && (told != nil || !errors.Is(outcomes[n], context.Canceled) || stored) {
			t.Errorf("caller %d, whose row was queued, is told %v; stored: %t", n, outcomes[n], stored)
		}
	}
}

// A connection that is lost during COMMIT leaves the outcome open: here Postgres commits, and nobody hears of it.
func TestOutcomeUnknown_ConnectionLost(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*testing.T, *rooms.Rooms, *transfer.Intent) error{
		"an insert": func(t *testing.T, store *rooms.Rooms, intent *transfer.Intent) error {
			t.Helper()
			_, err := store.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{})
			return err
		},
		"a transaction": func(t *testing.T, store *rooms.Rooms, intent *transfer.Intent) error {
			t.Helper()
			_, err := store.Intents.Transition(t.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct, gate := pgtest.Open(t, url), pgtest.NewGate(t, url)
			store := pgtest.Open(t, gate.URL)
			known := pgtest.LoadRegistry(t, direct)
			intent := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
			if name == "a transaction" {
				if _, err := direct.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}); err != nil {
					t.Fatal(err)
				}
			}
			events := pgtest.LookUp[int](t, direct, "SELECT count(*) FROM events")
			block := pgtest.BlockCommits(t, direct, "events")
			ended := make(chan error, 1)
			go func() { ended <- write(t, store, intent) }()
			block.Await(t, 1)
			gate.Shut()
			if err := <-ended; unknown(err) == nil || !postgres.Unavailable(err) {
				t.Errorf("%v does not say that the write may be stored", err)
			}
			block.Release(t)
			if n := pgtest.LookUp[int](t, direct, "SELECT count(*) FROM events"); n != events+1 {
				t.Errorf("%d events, and Postgres committed one more than %d", n, events)
			}
		})
	}
}

// What Postgres rolled back is not stored, and the error says so.
func TestOutcomeUnknown_RolledBack(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, direct)
	pgtest.BlockCommits(t, direct, "transfers")
	store, err := rooms.Open(url, postgres.Options{LockTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, err = store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody), intents.Idempotency{})
	if unknown(err) != nil || !postgres.Unavailable(err) {
		t.Errorf("an insert whose lock was not granted in time: %v", err)
	}
	err = store.Intents.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, _ intents.Tx) error { return context.DeadlineExceeded })
	if unknown(err) != nil {
		t.Errorf("a transaction whose work failed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = store.Intents.InTx(ctx, postgres.NoTurn, func(context.Context, intents.Tx) error { cancel(); return nil })
	if unknown(err) != nil || err == nil {
		t.Errorf("a transaction whose caller left before COMMIT was sent: %v", err)
	}
}
