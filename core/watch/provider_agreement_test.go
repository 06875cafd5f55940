package watch_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
)

// A provider that shows another receipt keeps an intent from being confirmed, until the two agree.
func TestProvider_OtherReceipt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*rpctest.Receipt){
		"reverted":      func(r *rpctest.Receipt) { r.Status, r.Logs = new(hexutil.Uint64), nil },
		"another block": func(r *rpctest.Receipt) { r.SetBlock(uint64(r.BlockNumber), common.HexToHash("0xbad")) },
		"no event":      func(r *rpctest.Receipt) { r.Logs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.bridge()
			tx := w.open(intent)
			w.fault(1, func(f *rpctest.Faults) { f.Receipts = map[common.Hash]func(*rpctest.Receipt){w.hash(tx): change} })
			w.mine(sepolia, tx)
			w.deepen(sepolia, 3*confirmations)
			w.want(intent, "created submitted")
			if w.count("intents_core_chain_disagreements_total") == 0 {
				t.Error("the disagreement is not counted")
			}
			w.fault(1, func(f *rpctest.Faults) { f.Receipts = nil })
			w.deepen(sepolia, 1)
			w.want(intent, "created submitted confirmed")
		})
	}
}

// While the second provider is down, nothing is confirmed for a minute.
func TestProvider_SecondDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	w.fault(1, func(f *rpctest.Faults) { f.Down = true })
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, 2*confirmations)
	w.want(intent, "created submitted")
	w.loops[sepolia].SetOthersDown()
	w.deepen(sepolia, 1)
	w.want(intent, "created submitted confirmed")
	if w.count("intents_core_chain_confirmed_alone_total") != 1 {
		t.Error("it is not counted")
	}
}

// Two URLs of one host are one opinion: nothing waits for a second one, and nobody counts as down.
func TestProvider_OneHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.urls = 2
	w.connect()
	w.follow(sepolia)
	intent, lost := w.bridge(), w.intent(transferOf(usdc))
	w.report(lost, w.hash(w.pay(lost)))
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")
	if w.count("intents_core_chain_confirmed_alone_total") != 0 {
		t.Error("the second URL counts as a provider that is down")
	}
	pgtest.Exec(t, w.store, "UPDATE transfers SET deadline = now() - interval '61 minutes' WHERE type = 'transfer'")
	w.due()
	w.tick(sepolia)
	w.want(lost, "created submitted") // two URLs that do not know it are one provider
}

// A provider on a fork of its own is contradicted by the other.
func TestProvider_OnAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	open := w.open(intent)
	w.mine(sepolia, open)
	fork := w.chains[sepolia].Fork(w.chains[sepolia].Head().Number - 1)
	fork.MineEmpty(5)
	w.nodes[sepolia][0].Follow(fork)
	w.deepen(sepolia, confirmations+3)
	w.want(intent, "created submitted")
	w.nodes[sepolia][0].Follow(w.chains[sepolia])
	w.deepen(sepolia, 1)
	w.want(intent, "created submitted confirmed")
}

// A provider on a fork that begins above everything that was read contradicts nothing that was read. With two providers nobody knows
// which of them is right, and nothing is concluded; with three the two that agree are followed.
func TestProvider_OnANewFork(t *testing.T) {
	t.Parallel()
	for providers, want := range map[int]string{2: "created", 3: "created submitted confirmed"} {
		t.Run(fmt.Sprint(providers, " providers"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			intent := w.bridge()
			fork := w.chains[sepolia].Fork(w.chains[sepolia].Head().Number)
			w.nodes[sepolia][0].Follow(fork)
			step := func() {
				fork.MineEmpty(1)
				w.chains[sepolia].MineEmpty(1)
				_, _ = w.loops[sepolia].Tick(t.Context())
			}
			fork.MineEmpty(1)
			w.chains[sepolia].Mine(w.open(intent))
			for range 4 * confirmations {
				step()
			}
			w.want(intent, want)
			if w.count("intents_core_chain_disagreements_total") == 0 {
				t.Error("the disagreement is not counted")
			}
			w.nodes[sepolia][0].Follow(w.chains[sepolia])
			w.chains[sepolia].MineEmpty(4 * confirmations)
			for range 2 * confirmations {
				w.deepen(sepolia, 1)
			}
			w.want(intent, "created submitted confirmed")
		})
	}
}

// A second provider that lags is waited for, and is not said to disagree.
func TestProvider_SecondLags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	w.fault(1, func(f *rpctest.Faults) { f.Lag = 2 * confirmations })
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted")
	if w.count("intents_core_chain_disagreements_total") != 0 || w.count("intents_core_chain_lagging_total") == 0 {
		t.Errorf("%v disagreements, %v lags", w.count("intents_core_chain_disagreements_total"), w.count("intents_core_chain_lagging_total"))
	}
	w.deepen(sepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed")
}
