package watch_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
)

// bogus reports so many hashes for an intent that are no transaction's, due since a time in SQL.
func (w *world) bogus(intent *transfer.Intent, hashes int, due string) {
	w.Helper()
	pgtest.Exec(w.T, w.store, fmt.Sprintf(`INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at, due_at)
		SELECT $1, $2, '%s', sha256(n::text::bytea), 'send', 'pending', true, now(), %s FROM generate_series(1, %d) AS n`, sepolia, due, hashes),
		intent.AccountID, intent.ID)
}

const (
	// neverLookedUp is the due time of new attempts.
	neverLookedUp = "to_timestamp(0)"
	hourAgo       = "now() - interval '1 hour'"
)

// An account that reports thousands of hashes does not delay the look-up of another account's transaction.
func TestQueue_FairBetweenAccounts(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]string{"new attempts": neverLookedUp, "attempts that are due again": hourAgo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			hostile := w.intent(transferOf(usdc))
			w.report(hostile, [32]byte{1})
			w.bogus(hostile, 3000, due)
			w.owner = uuid.New()
			strangers := w.intent(transferOf(usdc))
			tx := w.pay(strangers)
			w.mine(sepolia, tx)
			w.deepen(sepolia, 1) // its block has been read when the client reports it
			w.report(strangers, w.hash(tx))
			pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = now() - interval '1 second' WHERE account_id = $1 AND due_at > to_timestamp(0) OR account_id = $1 AND '"+name+"' <> 'new attempts'", w.owner)
			w.tick(sepolia)
			w.wantTransactions(strangers, "send mined")
		})
	}
}

// Of an account's attempts that no provider has ever shown, a thousand are looked up as often as others. Where there are more, each is
// looked up once soon and then once an hour; those of other accounts are looked up as before.
func TestQueue_ManyUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	hostile := w.intent(transferOf(usdc))
	w.bogus(hostile, 1001, neverLookedUp)
	known := w.intent(transferOf(usdc))
	w.seenPending(known, w.pay(known))
	w.owner = uuid.New()
	strangers := w.intent(transferOf(usdc))
	w.report(strangers, [32]byte{2})
	for range 5 {
		w.tick(sepolia)
	}
	const soon = "due_at < now() + interval '30 minutes'"
	if n := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE transfer_id = $1 AND "+soon, hostile.ID); n != 0 {
		t.Errorf("%d unknown attempts of the account are looked up soon", n)
	}
	if n := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE transfer_id IN ($1, $2) AND "+soon, known.ID, strangers.ID); n != 2 {
		t.Errorf("%d of the known attempt and the stranger's are looked up soon, want both", n)
	}
}
