package watch_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
)

// One account's transactions that no provider has, such as old ones that they have pruned, do not keep another
// account's from being confirmed, and are compared less and less often.
func TestConfirm_AccountsShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	hog := w.intent(transferOf(usdc))
	w.owner = uuid.New()
	intent := w.bridge()
	block := w.chains[sepolia].Block(5)
	for n := range w.nodes[sepolia] { // both have pruned it
		w.fault(n, func(f *rpctest.Faults) {
			f.Lie = func(_ string, result rpctest.Result) rpctest.Result {
				if shown, ok := result.(map[string]any); ok && shown["number"] == "0x5" {
					return nil
				}
				return result
			}
		})
	}
	pgtest.Exec(t, w.store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, seen_at)
		SELECT $1, $2, 'eip155:11155111', sha256(n::text::bytea), 'send', 'reverted', true, $3, $4, now() FROM generate_series(1, 600) n`,
		hog.AccountID, hog.ID, block.Number, block.Hash.Bytes())
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")

	due := func() int {
		return pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE compare_at > now() + interval '10 minutes'")
	}
	w.deepen(sepolia, 1)
	if n := due(); n != 0 {
		t.Errorf("%d transactions are postponed at once", n)
	}
	pgtest.Exec(t, w.store, "UPDATE transactions SET disputed_since = now() - interval '1 hour' WHERE disputed_since IS NOT NULL")
	w.deepen(sepolia, 2)
	if n := due(); n != 600 {
		t.Errorf("%d of 600 transactions that were contradicted for an hour are postponed", n)
	}
	receipts := w.nodes[sepolia][1].Calls()["eth_getTransactionReceipt"]
	w.deepen(sepolia, 1)
	if n := w.nodes[sepolia][1].Calls()["eth_getTransactionReceipt"] - receipts; n != 0 {
		t.Errorf("%d postponed transactions are compared", n)
	}
}
