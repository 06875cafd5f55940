package intents_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
)

func TestTransition_WritesEvent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	seen := &transfer.Transaction{Chain: intent.Source.Account.Chain, Hash: common.HexToHash("0x02"), Block: &transfer.Block{Number: 7}, Found: "0x03"}
	for _, cause := range []transfer.Command{
		{Trigger: transfer.Submit, Hash: "0x01"},
		{Trigger: transfer.Fail, Failure: transfer.TxReplaced, Observed: seen},
		{Trigger: transfer.Submit, Hash: "0x02"},
		{Trigger: transfer.Confirm, Hash: "0x02", Observed: seen},
	} {
		moved, err := store.Intents.Transition(t.Context(), owner, intent.ID, cause)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := store.Intents.Transfer(t.Context(), owner, intent.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(moved, stored, pgtest.Amounts); diff != "" {
			t.Errorf("after %s (-returned +stored):\n%s", cause.Trigger, diff)
		}
	}
	event := func(trigger transfer.Trigger, from, to transfer.Status, hash string, failure transfer.Failure, observed *transfer.Transaction) transfer.Event {
		return transfer.Event{
			AccountID: owner, TransferID: intent.ID, Trigger: trigger, From: from, To: to, Hash: hash, Failure: failure, Observed: observed,
		}
	}
	want := []transfer.Event{
		event("", "", transfer.Created, "", "", nil),
		event(transfer.Submit, transfer.Created, transfer.Submitted, "0x01", "", nil),
		event(transfer.Fail, transfer.Submitted, transfer.Failed, "0x01", transfer.TxReplaced, seen),
		event(transfer.Submit, transfer.Failed, transfer.Submitted, "0x02", "", nil),
		event(transfer.Confirm, transfer.Submitted, transfer.Confirmed, "0x02", "", seen),
	}
	got, err := store.Intents.Events(t.Context(), intent.AccountID, intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(transfer.Event{}, "At")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTransition_Refused(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	cancel := transfer.Command{Trigger: transfer.Cancel}
	if _, err := store.Intents.Transition(t.Context(), uuid.New(), intent.ID, cancel); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("another account: %v", err)
	}
	got, err := store.Intents.Transition(t.Context(), owner, intent.ID, transfer.Command{
		Trigger: transfer.Confirm, Hash: "0x01", Observed: &transfer.Transaction{},
	})
	if !errors.Is(err, transfer.ErrTransition) || got.Status != transfer.Created {
		t.Errorf("confirmed before it was submitted: %v, %+v", err, got)
	}
	if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM events"); n != 1 {
		t.Errorf("%d events, want the first alone", n)
	}
}

// Of many who cancel and submit at once, one wins, and the events tell one story.
func TestTransition_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	var cancelled, refused atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := store.Intents.Transition(t.Context(), owner, intent.ID, transfer.Command{Trigger: transfer.Cancel})
			switch {
			case err == nil:
				cancelled.Add(1)
			case errors.Is(err, transfer.ErrTransition):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if cancelled.Load() != 1 || refused.Load() != 15 {
		t.Errorf("%d cancelled, %d refused", cancelled.Load(), refused.Load())
	}
	if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM events WHERE to_status = 'cancelled'"); n != 1 {
		t.Errorf("%d events of one cancelling", n)
	}
}

// Several cores expire at once: each due intent expires once, and nothing else does.
func TestExpireTransfers(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	const due = 1200
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range due / 8 {
				pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
			}
		})
	}
	all.Wait()
	pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() - interval '1 second'")
	waiting := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	sent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	if _, err := store.Intents.Transition(t.Context(), owner, sent.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x01"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() - interval '1 second' WHERE id = $1", sent.ID)

	var expired atomic.Int32
	for range 4 {
		all.Go(func() {
			for {
				n, err := store.Intents.ExpireTransfers(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
				expired.Add(int32(n))
			}
		})
	}
	all.Wait()
	if expired.Load() != due {
		t.Errorf("%d expired, want %d", expired.Load(), due)
	}
	if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM events WHERE from_status = 'created' AND to_status = 'expired'"); n != due {
		t.Errorf("%d events of expiring, want %d", n, due)
	}
	for id, want := range map[uuid.UUID]transfer.Status{waiting.ID: transfer.Created, sent.ID: transfer.Submitted} {
		got, err := store.Intents.Transfer(t.Context(), owner, id)
		if err != nil || got.Status != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
}
