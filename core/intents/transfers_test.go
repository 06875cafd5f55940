package intents_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

func TestInsertTransfer_RoundTrip(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann, bob := uuid.New(), uuid.New()
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for name, c := range map[string]struct {
		body   string
		change func(*transfer.Intent)
	}{
		"transfer":        {pgtest.TransferBody, nil},
		"swap":            {pgtest.SwapBody, nil},
		"bridge":          {pgtest.BridgeBody, nil},
		"largest amounts": {pgtest.SwapBody, func(i *transfer.Intent) { i.Source.Amount, i.Destination.Amount = most, most }},
		"least amounts":   {pgtest.SwapBody, func(i *transfer.Intent) { i.Source.Amount, i.Destination.Amount = big.NewInt(1), big.NewInt(1) }},
		"2^255+1":         {pgtest.SwapBody, func(i *transfer.Intent) { i.Source.Amount = new(big.Int).SetBit(big.NewInt(1), 255, 1) }},
		"odd reference":   {pgtest.TransferBody, func(i *transfer.Intent) { i.Reference = `'; "\ ?0 😀` + "\t" }},
		"another scheme":  {pgtest.BridgeBody, func(i *transfer.Intent) { i.Settlement.Scheme = "StandardOrder" }},
		"latest expiry":   {pgtest.BridgeBody, func(i *transfer.Intent) { i.Settlement.Expires = time.Unix(math.MaxUint32, 0).UTC() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := pgtest.NewIntent(t, known, ann, c.body)
			if c.change != nil {
				c.change(want)
			}
			inserted, err := store.Intents.InsertTransfer(t.Context(), want, intents.Idempotency{})
			if err != nil || inserted != want {
				t.Fatalf("insert: got %+v, %v", inserted, err)
			}
			if _, err := store.Intents.InsertTransfer(t.Context(), want, intents.Idempotency{}); pgtest.RefusedBy(err) != "23505 transfers_pkey" {
				t.Errorf("the same id again: %v", err)
			}
			byID, err := store.Intents.Transfer(t.Context(), ann, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, byID, pgtest.Amounts); diff != "" {
				t.Errorf("by id (-want +got):\n%s", diff)
			}
			byOrder, err := store.Intents.TransferByOrder(t.Context(), ann, want.OrderID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, byOrder, pgtest.Amounts); diff != "" {
				t.Errorf("by order id (-want +got):\n%s", diff)
			}
			if _, err := store.Intents.Transfer(t.Context(), bob, want.ID); !errors.Is(err, intents.ErrTransferNotFound) {
				t.Errorf("another account reads it by id: %v", err)
			}
			if _, err := store.Intents.TransferByOrder(t.Context(), bob, want.OrderID); !errors.Is(err, intents.ErrTransferNotFound) {
				t.Errorf("another account reads it by order id: %v", err)
			}
			if i := want.Source.Amount.String(); i != pgtest.LookUp[string](t, store, `SELECT source_amount::text FROM transfers WHERE id = $1`, want.ID.String()) {
				t.Errorf("the stored amount is not %s", i)
			}
		})
	}
	if _, err := store.Intents.Transfer(t.Context(), ann, uuid.New()); !errors.Is(err, intents.ErrTransferNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann, bob := uuid.New(), uuid.New()
	once := pgtest.Idempotent(t, "order-1", pgtest.SwapBody)
	first := pgtest.NewIntent(t, known, ann, pgtest.SwapBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), first, once); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		owner  uuid.UUID
		once   intents.Idempotency
		replay bool
		err    error
	}{
		"the same request":      {ann, once, true, nil},
		"another request":       {ann, pgtest.Idempotent(t, once.Key, pgtest.BridgeBody), false, postgres.ErrKeyReused},
		"another key":           {ann, pgtest.Idempotent(t, "Order-1", pgtest.SwapBody), false, nil},
		"another account's key": {bob, once, false, nil},
		"no key":                {ann, intents.Idempotency{}, false, nil},
	} {
		intent := pgtest.NewIntent(t, known, c.owner, pgtest.SwapBody)
		got, err := store.Intents.InsertTransfer(t.Context(), intent, c.once)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
			continue
		}
		want := intent
		if c.replay {
			want = first
		}
		if c.err == nil {
			if diff := cmp.Diff(want, got, pgtest.Amounts); diff != "" {
				t.Errorf("%s: intent differs (-want +got):\n%s", name, diff)
			}
		}
	}
	// Each environment of an account has keys of its own.
	live := pgtest.Idempotent(t, once.Key, pgtest.LiveBody)
	live.Environment = network.Live
	firstLive := pgtest.NewIntent(t, known, ann, pgtest.LiveBody)
	for _, intent := range []*transfer.Intent{firstLive, pgtest.NewIntent(t, known, ann, pgtest.LiveBody)} {
		if got, err := store.Intents.InsertTransfer(t.Context(), intent, live); err != nil || got.ID != firstLive.ID {
			t.Errorf("in the live environment: %v, %v, want %s", got, err, firstLive.ID)
		}
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
}
