package watch_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// later makes all attempts have been unknown for so long.
func (w *world) later(interval string) {
	w.Helper()
	pgtest.Exec(w.T, w.store, "UPDATE transactions SET unknown_since = unknown_since - interval '"+interval+"'")
	w.due()
}

// seenPending has a provider show the transaction before it is replaced, so that its sender and nonce are known.
func (w *world) seenPending(intent *transfer.Intent, tx rpctest.Tx) {
	w.Helper()
	w.chains[sepolia].Submit(tx)
	w.report(intent, w.hash(tx))
	w.tick(sepolia)
}

// Another transaction took the nonce: with the same effect it carries the intent, with another the intent has failed.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asset        string
		same         bool
		want         string
		transactions []string
	}{
		"repriced":         {usdc, true, "created submitted submitted confirmed", []string{"send replaced*", "send mined*"}},
		"repriced, native": {native, true, "created submitted submitted confirmed", []string{"send replaced*", "send mined*"}},
		"cancelled":        {usdc, false, "created submitted failed", []string{"send replaced*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.intent(transferOf(c.asset))
			tx := w.pay(intent)
			w.seenPending(intent, tx)
			other := tx
			other.Input = []byte("at another price")
			if !c.same {
				other = rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From}
			}
			w.mine(sepolia, other)
			for range confirmations + 1 {
				w.due()
				w.deepen(sepolia, 1)
			}
			w.deepen(sepolia, confirmations)
			w.want(intent, c.want)
			w.wantTransactions(intent, c.transactions...)
			if !c.same {
				w.wantReason(intent, transfer.TxReplaced, w.hash(other).Hex())
			}
		})
	}
}

// The order was opened by another transaction than the reported one.
func TestReplaced_Open(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	tx := w.open(intent)
	w.seenPending(intent, tx)
	other := tx
	other.Input = []byte("at another price")
	w.mine(sepolia, other)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted submitted confirmed")
	stored := w.stored(intent)
	if stored.Hash != w.hash(other).Hex() {
		t.Errorf("carried by %s", stored.Hash)
	}
}

// The sender of an order cancelled it: the reason names the transaction that took the nonce, as for a transfer.
func TestReplaced_OpenCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	tx := w.open(intent)
	w.seenPending(intent, tx)
	other := rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From}
	w.mine(sepolia, other)
	for range confirmations + 1 {
		w.due()
		w.deepen(sepolia, 1)
	}
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed")
	w.wantReason(intent, transfer.TxReplaced, w.hash(other).Hex())
}

// A single provider must not know a transaction twice, a poll apart, before it counts as replaced.
func TestReplaced_OneProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.seenPending(intent, tx)
	w.chains[sepolia].Mine(rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From})
	w.chains[sepolia].MineEmpty(confirmations)
	w.due()
	w.tick(sepolia)
	w.want(intent, "created submitted")
	w.later("1 minute")
	w.tick(sepolia)
	w.want(intent, "created submitted failed")
}

// An attempt that nobody knows expires after the deadline and the grace: at once where two providers say so, after ten minutes where
// there is one. It still counts if it is mined later.
func TestDropped(t *testing.T) {
	t.Parallel()
	for name, providers := range map[string]int{"one provider": 1, "two providers": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			intent, tx := w.reported(usdc)
			w.tick(sepolia)
			w.want(intent, "created submitted")
			pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - interval '59 minutes'")
			w.due()
			w.tick(sepolia)
			w.want(intent, "created submitted")
			pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - interval '61 minutes'")
			pgtest.Exec(t, w.store, "UPDATE transactions SET unknown_since = now() - interval '9 minutes'")
			w.due()
			w.tick(sepolia)
			if providers == 1 {
				w.want(intent, "created submitted")
				w.later("2 minutes")
				w.tick(sepolia)
			}
			w.want(intent, "created submitted expired")
			w.wantTransactions(intent, "send dropped")
			w.mine(sepolia, tx)
			w.due()
			w.deepen(sepolia, confirmations)
			w.want(intent, "created submitted expired submitted confirmed")
		})
	}
}

// A pending transaction that a provider knows does not expire.
func TestDropped_KnownPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.seenPending(intent, tx)
	w.fault(0, func(f *rpctest.Faults) { f.Unknown = map[common.Hash]bool{w.hash(tx): true} })
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - interval '2 hours'")
	for range 3 {
		w.later("1 hour")
		w.tick(sepolia)
	}
	w.want(intent, "created submitted")
}

// After a pause one poll finds a transaction by itself and as the successor of the one that it replaced. It is one payment: it confirms one
// intent, and the other poll's finding is the same row.
func TestReplaced_SuccessorFoundAtOnce(t *testing.T) {
	t.Parallel()
	for name, oneIntent := range map[string]bool{"of one intent": true, "of another intent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			first := w.intent(transferOf(usdc))
			second := first
			if !oneIntent {
				second = w.intent(transferOf(usdc))
			}
			tx := w.pay(first)
			w.seenPending(first, tx)
			other := tx
			other.Input = []byte("at another price")
			w.report(second, w.hash(other))
			w.chains[sepolia].Mine(other)
			w.chains[sepolia].MineEmpty(confirmations)
			w.due()
			w.tick(sepolia)
			w.deepen(sepolia, 1)
			if oneIntent {
				w.want(first, "created submitted submitted confirmed")
				w.wantTransactions(first, "send replaced*", "send mined*")
				return
			}
			w.want(second, "created submitted confirmed")
			w.want(first, "created submitted failed")
		})
	}
}

// A chain that confirms deeper than full nodes keep states has nonces asked for where they keep them, and waits until that is confirmed.
func TestReplaced_DeepChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	const deep = 200
	pgtest.Exec(t, w.store, "UPDATE chains SET confirmations = $1 WHERE id = 'eip155:11155111'", deep)
	if err := w.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		w.fault(n, func(f *rpctest.Faults) { f.StatesKept = 128 })
	}
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.seenPending(intent, tx)
	w.chains[sepolia].Mine(rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From})
	w.chains[sepolia].MineEmpty(130)
	w.due()
	w.tick(sepolia)
	w.want(intent, "created submitted") // used, in a block that is not confirmed
	w.chains[sepolia].MineEmpty(deep)
	w.later("1 minute")
	w.tick(sepolia)
	w.want(intent, "created submitted failed")
	w.wantTransactions(intent, "send replaced*")
}
