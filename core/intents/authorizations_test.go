package intents_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/caip"
)

// Accounts have the same share of a page of signed transfers, and all of them are read in turn: one account with many takes nobody's place.
func TestSignedTransfers_Share(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	many, few := uuid.New(), []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	sign := func(account uuid.UUID, count int) {
		for range count {
			intent := pgtest.InsertTransfer(t, store, known, account, `{"signing":"erc3009",`+pgtest.TransferBody[1:])
			pgtest.Exec(t, store, `UPDATE transfers SET signature = '\x01', signed_at = now() WHERE id = $1`, intent.ID)
		}
	}
	sign(many, 40)
	for _, account := range few {
		sign(account, 2)
	}
	const limit = 8
	var turn intents.SignedTurn
	read := map[uuid.UUID]map[uuid.UUID]int{}
	for round := range 20 {
		page, next, err := store.Intents.SignedTransfers(t.Context(), caip.EIP155Chain(11155111), turn, limit)
		if err != nil {
			t.Fatal(err)
		}
		here := map[uuid.UUID]int{}
		for _, f := range page {
			if here[f.AccountID]++; read[f.AccountID] == nil {
				read[f.AccountID] = map[uuid.UUID]int{}
			}
			read[f.AccountID][f.TransferID]++
		}
		for _, account := range few {
			if here[account] != 2 {
				t.Errorf("round %d: %d of an account with two", round, here[account])
			}
		}
		if here[many] > 2 {
			t.Errorf("round %d: %d of the account with many", round, here[many])
		}
		turn = next
	}
	if n := len(read[many]); n != 40 {
		t.Errorf("%d of 40 were read in 20 rounds: %v", n, slices.Collect(maps.Values(read[many])))
	}
}
