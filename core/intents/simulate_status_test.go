package intents_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
)

// simulated is an intent of ann's that was taken to a status.
func simulated(t *testing.T, store *rooms.Rooms, ann uuid.UUID, body string, to transfer.Status) *transfer.Intent {
	t.Helper()
	intent := pgtest.InsertTransfer(t, store, pgtest.LoadRegistry(t, store), ann, body)
	got, err := store.Intents.Simulate(t.Context(), access.OfKey(ann), ann, intent.ID, to)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := store.Intents.Transfer(t.Context(), ann, intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, stored, pgtest.Amounts); diff != "" || !stored.Simulated || stored.Status != to {
		t.Errorf("%s (-returned +stored):\n%s", to, diff)
	}
	return stored
}

// Each step has its event, and each event and intent says that it was simulated.
func TestSimulate_Events(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := uuid.New()
	intent := simulated(t, store, ann, pgtest.SwapBody, transfer.Confirmed)
	for range 2 { // the second changes nothing
		if _, err := store.Intents.Simulate(t.Context(), access.OfKey(ann), ann, intent.ID, transfer.Refunded); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.AssignPositions(t, store)
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	type step struct {
		Type      string
		From, To  transfer.Status
		Simulated bool
		Hash      string
	}
	var got []step
	for _, e := range events {
		got = append(got, step{string(e.Type), e.Transfer.From, e.Transfer.To, e.Transfer.Simulated, e.Transfer.Summary.Hash})
	}
	want := []step{
		{"transfer.created", "", transfer.Created, false, ""},
		{"transfer.submitted", transfer.Created, transfer.Submitted, true, ""},
		{"transfer.confirmed", transfer.Submitted, transfer.Confirmed, true, ""},
		{"transfer.refunded", transfer.Confirmed, transfer.Refunded, true, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	of, err := store.Feed.TransferEvents(t.Context(), ann, intent.ID)
	if err != nil || len(of) != len(want) || !of[3].Transfer.Simulated {
		t.Errorf("the events of the intent: %+v, %v", of, err)
	}
	_, err = store.Intents.Simulate(t.Context(), access.OfKey(ann), ann, intent.ID, transfer.Confirmed)
	if !errors.Is(err, transfer.ErrTransition) {
		t.Errorf("back: %v", err)
	}
}

func TestSimulate_Sent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann, bob := pgtest.LoadRegistry(t, store), uuid.New(), uuid.New()
	intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	if _, err := store.Intents.ReportTransaction(t.Context(), access.OfKey(ann), ann, []uuid.UUID{intent.ID}, common.HexToHash("0x1")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Intents.Simulate(t.Context(), access.OfKey(ann), ann, intent.ID, transfer.Confirmed); !errors.Is(err, transfer.ErrSent) {
		t.Errorf("with a transaction: %v", err)
	}
	if _, err := store.Intents.Simulate(t.Context(), access.OfKey(bob), bob, intent.ID, transfer.Confirmed); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("of another account: %v", err)
	}
}

// An intent that was simulated takes no transaction, neither by a report nor by a watcher that has matched it before, and keeps its status.
func TestSimulate_TakesNoTransaction(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := uuid.New()
	intent := simulated(t, store, ann, pgtest.SwapBody, transfer.Submitted)
	_, err := store.Intents.ReportTransaction(t.Context(), access.OfKey(ann), ann, []uuid.UUID{intent.ID}, common.HexToHash("0x1"))
	if refused, ok := errors.AsType[*intents.BatchError](err); !ok || !errors.Is(refused.Refused[0].Err, transfer.ErrSimulated) {
		t.Errorf("a report: %v", err)
	}
	chain := intent.Source.Account.Chain
	lease := pgtest.AcquireLease(t, store, chain, time.Minute)
	events, err := store.Intents.WriteChain(t.Context(), lease, intents.ChainWrite{Seen: []intents.Observation{{
		AccountID: ann, TransferID: intent.ID, Transaction: transfer.Transaction{
			Role: transfer.RoleOpen, Chain: chain, Hash: common.HexToHash("0x2"), State: transfer.Mined, Confirmed: true, Block: &transfer.Block{Number: 3},
		},
	}}})
	if len(events) != 0 || err != nil {
		t.Errorf("a watcher: %v, %v", events, err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transactions`); n != 0 {
		t.Errorf("%d transactions", n)
	}
	if found, err := store.Intents.TransfersByOrders(t.Context(), [][32]byte{intent.OrderID}); len(found) != 0 || err != nil {
		t.Errorf("a watcher finds %v, %v", found, err)
	}
}

// No queue of a watcher, of expiry or of solvers has an intent that was simulated, whatever its status.
func TestSimulate_NeverDue(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := uuid.New()
	for _, body := range []string{pgtest.TransferBody, pgtest.SwapBody, pgtest.BridgeBody} {
		for _, status := range transfer.SimulatedStatuses {
			if body == pgtest.TransferBody && (status == transfer.Filled || status == transfer.Refunded) {
				continue
			}
			simulated(t, store, ann, body, status)
		}
	}
	pgtest.Exec(t, store, `UPDATE transfers SET deadline = now() - interval '1 h', expires = CASE WHEN expires IS NOT NULL THEN now() - interval '1 h' END`)
	pgtest.Exec(t, store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at, complete_until)
		VALUES ('eip155:11155111', 'core', 1, now(), 9, 8, 7, now(), now())`)
	now := store.Intents.Now()
	for name, due := range map[string]func() (int, error){
		"expiry":     func() (int, error) { return store.Intents.ExpireTransfers(t.Context()) },
		"refundable": func() (int, error) { return store.Intents.WriteRefundableEvents(t.Context()) },
		"overdue": func() (int, error) {
			orders, err := store.Intents.OverdueOrders(t.Context(), sepolia, now.Add(-24*time.Hour), now, 100)
			return len(orders), err
		},
		"live": func() (int, error) {
			ids, err := store.Intents.LiveOrders(t.Context(), sepolia)
			return len(ids), err
		},
		"signed": func() (int, error) {
			page, _, err := store.Intents.SignedTransfers(t.Context(), sepolia, intents.SignedTurn{}, 100)
			return len(page), err
		},
		"submissions": func() (int, error) {
			page, _, _, err := store.Intents.TakeSubmissions(t.Context(), uuid.Nil)
			return len(page), err
		},
		"attempts": func() (int, error) {
			page, _, err := store.Intents.DueAttempts(t.Context(), sepolia, intents.Turn{}, 100)
			return len(page), err
		},
		"failed": func() (int, error) {
			page, _, err := store.Intents.DueFailed(t.Context(), sepolia, intents.Turn{}, 100)
			return len(page), err
		},
		"orders": func() (int, error) {
			page, _, err := store.Intents.DueOrders(t.Context(), sepolia, intents.Turn{}, 100)
			return len(page), err
		},
		"unconfirmed": func() (int, error) {
			page, err := store.Intents.UnconfirmedTransactions(t.Context(), sepolia, watched.Progress{Confirmed: 8, Final: 7}, now, 100)
			return len(page), err
		},
		"pending": func() (int, error) {
			page, err := store.Intents.PendingAttempts(t.Context(), sepolia, 100)
			return len(page), err
		},
		"signatures": func() (int, error) { return store.Intents.EraseSignatures(t.Context()) },
		"unsent": func() (int, error) {
			_, found, err := store.Intents.OldestUnsent(t.Context(), sepolia)
			if found {
				return 1, err
			}
			return 0, err
		},
	} {
		if n, err := due(); n != 0 || err != nil {
			t.Errorf("%s: %d due, %v", name, n, err)
		}
	}
}
