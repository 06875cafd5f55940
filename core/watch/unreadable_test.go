package watch_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// A reported transaction that no provider can show is tried again later; the others of the poll are recorded.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asset  string
		change func(*rpctest.Tx)
		faults func(f *rpctest.Faults, hash common.Hash)
		want   string
	}{
		"receipt that cannot be decoded": {usdc, nil, func(f *rpctest.Faults, hash common.Hash) {
			f.Garbled = map[common.Hash]bool{hash: true}
		}, "send pending"},
		"receipt from another block": {usdc, nil, func(f *rpctest.Faults, hash common.Hash) {
			f.Receipts = map[common.Hash]func(*rpctest.Receipt){hash: func(r *rpctest.Receipt) { r.SetBlock(3, common.Hash{1}) }}
		}, "send pending"},
		"receipt without a status and logs": {usdc, func(tx *rpctest.Tx) { tx.Logs = nil }, func(f *rpctest.Faults, hash common.Hash) {
			f.Receipts = map[common.Hash]func(*rpctest.Receipt){hash: func(r *rpctest.Receipt) { r.Status = nil }}
		}, "send reverted*"},
		"pruned state of a recent block": {native, func(tx *rpctest.Tx) { tx.From = common.HexToAddress(bob) }, func(f *rpctest.Faults, _ common.Hash) {
			f.MissingState = true
		}, "send pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			poisoned, healthy := w.intent(transferOf(c.asset)), w.intent(transferOf(usdc))
			odd, tx := w.pay(poisoned), w.pay(healthy)
			if c.change != nil {
				c.change(&odd)
			}
			for _, node := range w.nodes[sepolia] {
				node.Set(func(f *rpctest.Faults) { c.faults(f, w.hash(odd)) })
			}
			w.chains[sepolia].Mine(odd, tx)
			w.chains[sepolia].MineEmpty(2)
			w.report(poisoned, w.hash(odd))
			w.report(healthy, w.hash(tx))
			w.tick(sepolia)
			w.deepen(sepolia, confirmations)
			w.want(healthy, "created submitted confirmed")
			w.wantTransactions(poisoned, c.want)
			if c.want != "send pending" {
				return
			}
			if w.count("intents_core_chain_unreadable_attempts_total") == 0 {
				t.Error("the look-ups are not counted")
			}
			for _, node := range w.nodes[sepolia] {
				node.Set(func(f *rpctest.Faults) { *f = rpctest.Faults{} })
			}
			w.due()
			w.tick(sepolia)
			if stored, _ := w.store.Intents.Transactions(t.Context(), poisoned.AccountID, poisoned.ID); stored[0].Block == nil {
				t.Errorf("%s once the providers show it", stored[0].State)
			}
		})
	}
}

// The state of an old block is not asked for: what happened before the intent is no payment of it.
func TestUnreadable_OldBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.chains[sepolia].SetTime(w.store.Now().Add(-time.Hour))
	intent := w.intent(transferOf(native))
	tx := w.pay(intent)
	tx.From = common.HexToAddress(bob)
	w.mine(sepolia, tx)
	w.chains[sepolia].SetTime(w.store.Now())
	w.deepen(sepolia, 1)
	w.fault(0, func(f *rpctest.Faults) { f.MissingState = true })
	w.report(intent, w.hash(tx))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed")
	w.wantTransactions(intent, "send mismatch*")
	if n := w.nodes[sepolia][0].Calls()["eth_getCode"]; n != 0 {
		t.Errorf("eth_getCode was called %d times", n)
	}
}

// What one provider cannot show, two others can.
func TestUnreadable_AtOneProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	intent, tx := w.reported(usdc)
	w.fault(0, func(f *rpctest.Faults) { f.Garbled = map[common.Hash]bool{w.hash(tx): true} })
	w.mine(sepolia, tx)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")
}

// The time between two look-ups grows, up to an hour, and meanwhile no poll asks for the transaction.
func TestUnreadable_BacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.chains[sepolia].Mine(tx)
	w.report(intent, w.hash(tx))
	node := w.nodes[sepolia][0]
	node.Set(func(f *rpctest.Faults) { f.Garbled = map[common.Hash]bool{w.hash(tx): true} })
	for age, want := range map[string]time.Duration{"1 hour": 15 * time.Minute, "20 hours": time.Hour} {
		pgtest.Exec(t, w.store, "UPDATE transactions SET seen_at = now() - interval '"+age+"'")
		w.due()
		w.tick(sepolia)
		due := time.Until(pgtest.LookUp[time.Time](t, w.store, "SELECT due_at FROM transactions"))
		if due > want+want/8+time.Minute || due < want/2 {
			t.Errorf("due in %v at the age of %s, want about %v", due, age, want)
		}
		before := node.Calls()["eth_getTransactionReceipt"]
		w.deepen(sepolia, 3)
		if n := node.Calls()["eth_getTransactionReceipt"]; n != before {
			t.Errorf("%d receipts were asked for before it was due", n-before)
		}
	}
}

// A transaction in a block that a reorganization took away, and that no provider shows any more, is pending again.
func TestUnreadable_Reorganized(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	poisoned, healthy := w.intent(transferOf(usdc)), w.intent(transferOf(usdc))
	odd, tx := w.pay(poisoned), w.pay(healthy)
	w.report(poisoned, w.hash(odd))
	w.report(healthy, w.hash(tx))
	w.mine(sepolia, odd, tx)
	w.wantTransactions(poisoned, "send mined")
	w.fault(0, func(f *rpctest.Faults) { f.Garbled = map[common.Hash]bool{w.hash(odd): true} })
	w.chains[sepolia].Reorg(1, nil, []rpctest.Tx{odd, tx})
	w.tick(sepolia)
	w.wantTransactions(poisoned, "send pending")
	w.deepen(sepolia, confirmations)
	if stored := w.stored(healthy); stored.Status != transfer.Confirmed {
		t.Errorf("the other transfer is %s", stored.Status)
	}
}

// What the second provider cannot show is not confirmed; the others of the poll are.
func TestUnreadable_AtSecondProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	poisoned, healthy := w.intent(transferOf(usdc)), w.intent(transferOf(usdc))
	odd, tx := w.pay(poisoned), w.pay(healthy)
	w.report(poisoned, w.hash(odd))
	w.report(healthy, w.hash(tx))
	w.fault(1, func(f *rpctest.Faults) { f.Garbled = map[common.Hash]bool{w.hash(odd): true} })
	w.mine(sepolia, odd, tx)
	w.deepen(sepolia, confirmations)
	w.want(healthy, "created submitted confirmed")
	w.want(poisoned, "created submitted")
}
