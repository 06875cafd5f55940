package postgres_test

import (
	"errors"
	"math/big"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
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
		"transfer":        {transferBody, nil},
		"swap":            {swapBody, nil},
		"bridge":          {bridgeBody, nil},
		"largest amounts": {swapBody, func(i *transfer.Intent) { i.Source.Amount, i.Destination.Amount = most, most }},
		"least amounts":   {swapBody, func(i *transfer.Intent) { i.Source.Amount, i.Destination.Amount = big.NewInt(1), big.NewInt(1) }},
		"2^255+1":         {swapBody, func(i *transfer.Intent) { i.Source.Amount = new(big.Int).SetBit(big.NewInt(1), 255, 1) }},
		"odd reference":   {transferBody, func(i *transfer.Intent) { i.Reference = `'; "\ ?0 😀` + "\t" }},
		"another scheme":  {bridgeBody, func(i *transfer.Intent) { i.Settlement.Scheme = "StandardOrder" }},
		"largest domains": {bridgeBody, func(i *transfer.Intent) { i.Settlement.OriginDomain, i.Settlement.DestinationDomain = 4294967295, 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := newIntent(t, known, ann, c.body)
			if c.change != nil {
				c.change(want)
			}
			inserted, err := store.InsertTransfer(t.Context(), want, postgres.Idempotency{})
			if err != nil || inserted != want {
				t.Fatalf("insert: got %+v, %v", inserted, err)
			}
			byID, err := store.Transfer(t.Context(), ann, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, byID, amounts); diff != "" {
				t.Errorf("by id (-want +got):\n%s", diff)
			}
			byOrder, err := store.TransferByOrder(t.Context(), ann, want.OrderID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, byOrder, amounts); diff != "" {
				t.Errorf("by order id (-want +got):\n%s", diff)
			}
			if _, err := store.Transfer(t.Context(), bob, want.ID); !errors.Is(err, postgres.ErrTransferNotFound) {
				t.Errorf("another account reads it by id: %v", err)
			}
			if _, err := store.TransferByOrder(t.Context(), bob, want.OrderID); !errors.Is(err, postgres.ErrTransferNotFound) {
				t.Errorf("another account reads it by order id: %v", err)
			}
			if i := want.Source.Amount.String(); i != pgtest.LookUp[string](t, store, `SELECT source_amount::text FROM transfers WHERE id = $1`, want.ID.String()) {
				t.Errorf("the stored amount is not %s", i)
			}
		})
	}
	if _, err := store.Transfer(t.Context(), ann, uuid.New()); !errors.Is(err, postgres.ErrTransferNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestInsertTransfer_Twice(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	intent := insertIntent(t, store, known, uuid.New(), transferBody)
	_, err := store.InsertTransfer(t.Context(), intent, postgres.Idempotency{})
	if refusedBy(err) != unique+"transfers_pkey" {
		t.Errorf("the same id again: %v", err)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann, bob := uuid.New(), uuid.New()
	once := idempotent(t, "order-1", swapBody)
	first := newIntent(t, known, ann, swapBody)
	if _, err := store.InsertTransfer(t.Context(), first, once); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		owner  uuid.UUID
		once   postgres.Idempotency
		replay bool
		err    error
	}{
		"the same request":      {ann, once, true, nil},
		"another request":       {ann, idempotent(t, once.Key, bridgeBody), false, postgres.ErrKeyReused},
		"another key":           {ann, idempotent(t, "Order-1", swapBody), false, nil},
		"another account's key": {bob, once, false, nil},
		"no key":                {ann, postgres.Idempotency{}, false, nil},
	} {
		intent := newIntent(t, known, c.owner, swapBody)
		got, err := store.InsertTransfer(t.Context(), intent, c.once)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
			continue
		}
		want := intent
		if c.replay {
			want = first
		}
		if c.err == nil {
			if diff := cmp.Diff(want, got, amounts); diff != "" {
				t.Errorf("%s: intent differs (-want +got):\n%s", name, diff)
			}
		}
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
}

// The test and the live environment of an account each have keys of their own, whichever uses a key first and however many
// requests come at once.
func TestIdempotency_Environments(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	const twins = 8
	bodies := map[network.Environment]string{network.Test: transferBody, network.Live: liveBody}
	for round := range 10 {
		owner := uuid.New()
		var mu sync.Mutex
		made := map[network.Environment]map[uuid.UUID]bool{network.Test: {}, network.Live: {}}
		var work sync.WaitGroup
		for env, body := range bodies {
			once := idempotent(t, "order-1", body)
			once.Environment = env
			for range twins {
				intent := newIntent(t, known, owner, body)
				work.Go(func() {
					got, err := store.InsertTransfer(t.Context(), intent, once)
					if err != nil {
						t.Errorf("round %d: %s: %v", round, env, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					made[env][got.ID] = true
				})
			}
		}
		work.Wait()
		if len(made[network.Test]) != 1 || len(made[network.Live]) != 1 {
			t.Errorf("round %d: %d test and %d live intents of one key, want one of each", round, len(made[network.Test]), len(made[network.Live]))
		}
		for env, body := range bodies {
			once := idempotent(t, "order-1", body)
			once.Environment = env
			if got, err := store.TransferByIdempotencyKey(t.Context(), owner, once); err != nil || !made[env][got.ID] {
				t.Errorf("round %d: first of %s: %v, %v", round, env, got, err)
			}
			once.Request = parseRequest(t, bridgeBody)
			if _, err := store.TransferByIdempotencyKey(t.Context(), owner, once); !errors.Is(err, postgres.ErrKeyReused) {
				t.Errorf("round %d: another request of %s: %v", round, env, err)
			}
		}
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
}

func TestIdempotency_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann := uuid.New()
	once := idempotent(t, "order-1", bridgeBody)
	const twins = 32
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var work sync.WaitGroup
	start := make(chan struct{})
	for range twins {
		intent := newIntent(t, known, ann, bridgeBody)
		work.Go(func() {
			<-start
			got, err := store.InsertTransfer(t.Context(), intent, once)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[got.ID]++
		})
	}
	close(start)
	work.Wait()
	stored := pgtest.LookUp[uuid.UUID](t, store, `SELECT id FROM transfers`)
	if diff := cmp.Diff(map[uuid.UUID]int{stored: twins}, seen); diff != "" {
		t.Errorf("answers differ (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`); n != 1 {
		t.Errorf("%d rows", n)
	}
}
