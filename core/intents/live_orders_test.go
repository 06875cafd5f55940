package intents_test

import (
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/caip"
)

// The live orders of a chain are read in bounded statements, whatever the number of orders, and one account's take no place of another's.
func TestLiveOrders(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	chain := caip.EIP155Chain(11155111)
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	read := func() (ids []common.Hash, blocks int) {
		ids, err := store.Intents.LiveOrders(t.Context(), chain)
		pgtest.Must(t, err)
		asked.Mu.Lock()
		defer asked.Mu.Unlock()
		blocks = buffersRead(t, plain, asked.Text)
		asked.Text = nil
		return ids, blocks
	}
	if ids, _ := read(); len(ids) != 0 {
		t.Errorf("%d orders of no intents", len(ids))
	}

	// The first order is an account's, and all later ones another's.
	insert := idle["orders that were claimed"]
	pgtest.Exec(t, plain, insert, 1, 20_000)
	pgtest.Exec(t, plain, "UPDATE transfers SET account_id = md5('many')::uuid, id = md5(id::text)::uuid WHERE order_id <> sha256('1')")
	pgtest.Exec(t, plain, "VACUUM ANALYZE transfers")
	ids, few := read()
	if len(ids) < 2500 || len(ids) > 10_000 || !slices.Contains(ids, common.Hash(sha256.Sum256([]byte("1")))) {
		t.Errorf("%d live orders of 20,000, or not that of the other account", len(ids))
	}
	for from := 20_001; from < 200_000; from += 20_000 {
		pgtest.Exec(t, plain, insert, from, from+19_999)
	}
	pgtest.Exec(t, plain, "VACUUM ANALYZE transfers")
	_, many := read()
	t.Logf("%d blocks of 20,000 orders, %d of 200,000", few, many)
	if many > 2*few {
		t.Errorf("%d blocks are read of 200,000 orders, and %d of 20,000", many, few)
	}
}
