package watch_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// A transaction whose receipt no provider answers in time delays its own account alone.
func TestChosen_SlowReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	healthy := w.intent(transferOf(usdc))
	owner := w.owner
	w.owner = uuid.New()
	slow := w.intent(transferOf(usdc))
	tx, odd := w.pay(healthy), w.pay(slow)
	for n := range w.nodes[sepolia] {
		w.fault(n, func(f *rpctest.Faults) { f.Delays = map[string]time.Duration{w.hash(odd).Hex(): time.Hour} })
	}
	w.chains[sepolia].Mine(odd, tx)
	w.report(slow, w.hash(odd))
	w.owner = owner
	w.report(healthy, w.hash(tx))
	w.deepen(sepolia, confirmations)
	w.want(healthy, "created submitted confirmed")
	w.wantTransactions(slow, "send pending")
}

// Once an account has named a transaction that takes too long, what it names is asked for after what others have named, and never in one
// request with it.
func TestChosen_SlowAccountsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	node, payer := w.nodes[sepolia][0], w.owner
	w.owner = uuid.New()
	slow := w.intent(transferOf(usdc))
	odd := w.pay(slow)
	w.report(slow, w.hash(odd))
	w.fault(0, func(f *rpctest.Faults) { f.Delays = map[string]time.Duration{w.hash(odd).Hex(): time.Hour} })
	w.chains[sepolia].Mine(odd)
	w.tick(sepolia)

	w.owner = payer
	healthy := w.intent(transferOf(usdc))
	paid := w.pay(healthy)
	w.report(healthy, w.hash(paid))
	w.chains[sepolia].Mine(paid)
	var mu sync.Mutex
	var asked []string
	node.Set(func(f *rpctest.Faults) {
		f.Requested = func(body []byte) {
			mu.Lock()
			defer mu.Unlock()
			names := ""
			for name, hash := range map[string]common.Hash{"paid": w.hash(paid), "slow": w.hash(odd)} {
				if bytes.Contains(body, []byte("eth_getTransactionReceipt")) && bytes.Contains(body, []byte(hash.Hex())) {
					names += name
				}
			}
			if names != "" {
				asked = append(asked, names)
			}
		}
	})
	w.due()
	w.tick(sepolia)
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"paid", "slow"}, slices.Compact(asked)); diff != "" {
		t.Errorf("receipts in the order of the requests (-want +got):\n%s", diff)
	}
}

// A transaction of many logs that many intents name is read once by a poll, and no log of it is kept.
func TestChosen_ManyLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var all []*transfer.Intent
	for range 20 {
		all = append(all, w.intent(transferOf(usdc)))
	}
	tx := w.pay(all[0])
	tx.Logs = nil
	for range 1000 {
		tx.Logs = append(tx.Logs, rpctest.Log{Address: common.Address{1}, Topics: []common.Hash{{2}}, Data: []byte{}})
	}
	w.chains[sepolia].Mine(tx)
	for _, intent := range all {
		w.report(intent, w.hash(tx))
	}
	for range confirmations {
		for n, node := range w.nodes[sepolia] {
			before := node.Calls()["eth_getTransactionReceipt"]
			w.tick(sepolia)
			if read := node.Calls()["eth_getTransactionReceipt"] - before; read > 1 {
				t.Errorf("provider %d was asked for the receipt %d times by one poll", n, read)
			}
		}
		w.chains[sepolia].MineEmpty(1)
	}
	w.tick(sepolia)
	for _, intent := range all {
		w.want(intent, "created submitted failed")
	}
	if kept, err := w.loops[sepolia].LogsKept(t.Context(), all[0]); err != nil || kept > 0 {
		t.Errorf("%d logs that concern nobody are kept, %v", kept, err)
	}
}

// An account that has used its look-ups of the day costs no more calls, and what it pays is found in the new blocks all the same.
func TestChosen_LookUpsPerDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.watcher.SetLookUpsPerDay(10)
	paid := w.intent(transferOf(usdc))
	for n := range 40 {
		w.report(w.intent(transferOf(usdc)), common.Hash{1, byte(n)})
	}
	pay := w.pay(paid)
	w.report(paid, w.hash(pay))
	node := w.nodes[sepolia][0]
	before := node.Calls()
	for range 3 {
		w.due()
		w.deepen(sepolia, 1)
	}
	calls := node.Calls()
	for _, method := range []string{"eth_getTransactionReceipt", "eth_getTransactionByHash"} {
		if n := calls[method] - before[method]; n > 11 {
			t.Errorf("%d calls of %s", n, method)
		}
	}
	w.mine(sepolia, pay)
	w.deepen(sepolia, confirmations)
	w.want(paid, "created submitted confirmed")
}

// An account that names many large transactions reads its part of a poll and no more, others theirs, and all are read in the end.
func TestChosen_Bytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.watcher.SetAccountBytes(1 << 20)
	var large []rpctest.Tx
	var hogs []*transfer.Intent
	for range 40 {
		intent := w.intent(transferOf(usdc))
		tx := w.pay(intent)
		for range 500 {
			tx.Logs = append(tx.Logs, rpctest.Log{Address: common.Address{1}, Topics: []common.Hash{{2}}, Data: make([]byte, 64)})
		}
		w.report(intent, w.hash(tx))
		hogs, large = append(hogs, intent), append(large, tx)
	}
	w.owner = uuid.New()
	other := w.intent(transferOf(usdc))
	paid := w.pay(other)
	w.report(other, w.hash(paid))
	w.chains[sepolia].Mine(append(large, paid)...)
	w.chains[sepolia].MineEmpty(confirmations)
	node, polls := w.nodes[sepolia][0], 0
	for confirmed := 0; confirmed < len(hogs); polls++ {
		if polls > 60 {
			t.Fatalf("%d of %d are confirmed", confirmed, len(hogs))
		}
		w.due()
		before := node.Calls()["eth_getTransactionReceipt"]
		w.tick(sepolia)
		if read := node.Calls()["eth_getTransactionReceipt"] - before; read > 8 {
			t.Errorf("%d receipts of 0.2 MB in a poll", read)
		}
		if polls == 1 {
			w.want(other, "created submitted confirmed")
		}
		confirmed = 0
		for _, intent := range hogs {
			if w.stored(intent).Status == transfer.Confirmed {
				confirmed++
			}
		}
	}
	t.Logf("%d polls", polls)
}

// Many accounts that name one large transaction each do not have a poll read more than its bytes and one request, and all are read in the end.
func TestChosen_PollBytes(t *testing.T) {
	t.Parallel()
	const accounts, request = 150, 100
	w := newWorld(t, 1)
	w.watcher.SetPollBytes(1 << 20)
	var large []rpctest.Tx
	for range accounts {
		w.owner = uuid.New()
		intent := w.intent(transferOf(usdc))
		tx := w.pay(intent)
		for range 60 {
			tx.Logs = append(tx.Logs, rpctest.Log{Address: common.Address{1}, Topics: []common.Hash{{2}}, Data: make([]byte, 64)})
		}
		w.report(intent, w.hash(tx))
		large = append(large, tx)
	}
	w.chains[sepolia].Mine(large...)
	w.chains[sepolia].MineEmpty(confirmations)
	node, confirmed := w.nodes[sepolia][0], 0
	for polls := 0; confirmed < accounts; polls++ {
		if polls > 20 {
			t.Fatalf("%d of %d are confirmed", confirmed, accounts)
		}
		w.due()
		before := node.Calls()["eth_getTransactionReceipt"]
		w.tick(sepolia)
		if read := node.Calls()["eth_getTransactionReceipt"] - before; read > request {
			t.Errorf("%d receipts in a poll", read)
		}
		confirmed = pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transfers WHERE status = 'confirmed'")
	}
}
