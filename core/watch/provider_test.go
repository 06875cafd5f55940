package watch_test

import (
	"errors"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/watch"
	"intents.internal/core/watch/watched"
)

// I4: nothing is concluded from a provider's silence, whatever kind of silence it is. The second provider is asked instead, and while
// there is none nothing happens.
func TestProvider_Faults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*rpctest.Faults){
		"lags with empty logs": func(f *rpctest.Faults) { f.Lag = 2 },
		"lags with an error":   func(f *rpctest.Faults) { f.Lag, f.LagError = 2, true },
		"down":                 func(f *rpctest.Faults) { f.Down = true },
		"429":                  func(f *rpctest.Faults) { f.Status, f.RetryAfter = 429, time.Minute },
		"500":                  func(f *rpctest.Faults) { f.Status = 500 },
		"garbage":              func(f *rpctest.Faults) { f.Answer = []byte("<html>") },
		"truncated":            func(f *rpctest.Faults) { f.Truncate = true },
		"no methods": func(f *rpctest.Faults) {
			f.Errors = map[string]rpctest.Error{"eth_getLogs": {Code: -32601, Message: "method not found"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.openBridge()
			w.fault(0, fault)
			w.deepen(sepolia, confirmations+2) // the second provider is asked, and confirms at its own depth
			if f := w.nodes[sepolia][0].Faults(); f.Lag == 0 && f.Errors == nil {
				w.loops[sepolia].SetOthersDown()
				w.deepen(sepolia, 1)
			}
			w.want(intent, "created submitted confirmed")
			w.fault(1, fault)
			w.chains[sepolia].Mine(w.refund(intent))
			for range 2 * confirmations {
				w.chains[sepolia].MineEmpty(1)
				_, _ = w.loops[sepolia].Tick(t.Context())
			}
			w.want(intent, "created submitted confirmed")
		})
	}
}

// A provider that shows a block without its events does not make a known event vanish.
func TestProvider_EmptyLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.openBridge()
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")
	if w.count("intents_core_chain_disagreements_total") == 0 {
		t.Error("the disagreement is not counted")
	}
	w.fault(1, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.chains[sepolia].MineEmpty(1)
	w.follow(sepolia)
	if _, err := w.loops[sepolia].Tick(t.Context()); err != nil && !errors.Is(err, watch.ErrMissingLogs) {
		t.Error(err)
	}
	w.want(intent, "created submitted confirmed")
}

// A load balancer may send the question for the newest block to one node and that for events to another, which lags and answers with
// none. Without the block that it lacks, its answer is not used: the blocks would be read twice, and the event missed.
func TestProvider_Balanced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.chains[sepolia].Mine(w.open(intent))
	w.chains[sepolia].MineEmpty(confirmations)
	w.fault(0, func(f *rpctest.Faults) { f.Lag, f.Balanced = confirmations, true })
	for range 3 { // the block that was known is there, the newest are not
		if _, err := w.loops[sepolia].Tick(t.Context()); !errors.Is(err, watch.ErrLags) {
			t.Errorf("the node lags: %v", err)
		}
	}
	w.fault(0, func(f *rpctest.Faults) { f.Lag = 0 })
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
}

// An event that a provider left out when its block was new is found when the block is read again.
func TestProvider_LateLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.mine(sepolia, w.open(intent))
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = false })
	w.want(intent, "created")
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed")
}

// A fill that one provider invents, on a block that the other one does not have, fills nothing.
func TestProvider_InventedFill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.confirmedBridge()
	fork := w.chains[baseSepolia].Fork(w.chains[baseSepolia].Head().Number)
	fork.Mine(w.fill(intent))
	w.nodes[baseSepolia][0].Follow(fork)
	for range 4 * confirmations {
		fork.MineEmpty(1)
		w.chains[baseSepolia].MineEmpty(1)
		_, _ = w.loops[baseSepolia].Tick(t.Context())
	}
	w.want(intent, "created submitted confirmed")
}

// I3: a process that was paused past its lease writes nothing.
func TestLease_Lost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	before := w.loops[sepolia]
	w.follow(sepolia)
	w.chains[sepolia].Mine(w.open(intent))
	if _, err := before.Tick(t.Context()); !errors.Is(err, watched.ErrLeaseLost) {
		t.Errorf("the old one: %v", err)
	}
	w.want(intent, "created")
	w.tick(sepolia)
	w.want(intent, "created submitted")
	if renewal, err := w.store.Watched.RenewLeases(t.Context(), []watched.Lease{before.Lease()}, time.Minute); len(renewal.Lost) != 1 || err != nil {
		t.Errorf("the old lease is renewed: %+v, %v", renewal, err)
	}
}

// A poll costs what chain and events cost, not the number of intents.
func TestTick_Calls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for range 20 {
		w.bridge()
	}
	node := w.nodes[sepolia][0]
	calls := func(do func()) map[string]int {
		before := node.Calls()
		do()
		after := node.Calls()
		for method, n := range before {
			if after[method] -= n; after[method] == 0 {
				delete(after, method)
			}
		}
		return after
	}
	idle := calls(func() { w.mine(sepolia) })
	if len(idle) != 2 || idle["eth_getBlockByNumber"] != 4 || idle["eth_getLogs"] != 1 {
		t.Errorf("a poll without attempts: %v", idle)
	}
	for range 20 { // more attempts than blocks: the blocks' lists are read
		intent := w.intent(transferOf(usdc))
		w.report(intent, w.hash(w.pay(intent)))
	}
	w.mine(sepolia)
	pgtest.Exec(t, w.store, "UPDATE transactions SET due_at = now() + interval '1 hour'")
	many := calls(func() { w.mine(sepolia) })
	if many["eth_getBlockByNumber"] != 5 || many["eth_getTransactionReceipt"] != 0 {
		t.Errorf("a poll with 20 attempts and one new block: %v", many)
	}
}

// A window of many ranges costs a poll its new part, which is read twice, and not all of it.
func TestTick_WindowReadTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	pgtest.Exec(t, w.store, "UPDATE chains SET confirmations = 15 WHERE id = 'eip155:11155111'")
	pgtest.Must(t, w.live.Refresh(t.Context()))
	w.fault(0, func(f *rpctest.Faults) { f.RangeLimit = 1 })
	w.deepen(sepolia, 20)
	before := w.nodes[sepolia][0].Calls()["eth_getLogs"]
	intent := w.bridge()
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, 4)
	if calls := w.nodes[sepolia][0].Calls()["eth_getLogs"] - before; calls > 5*3 {
		t.Errorf("five polls of a window of 15 ranges read %d ranges", calls)
	}
	w.chains[sepolia].Reorg(3, nil, nil, []rpctest.Tx{w.open(intent)})
	w.chains[sepolia].MineEmpty(1)
	w.deepen(sepolia, 15)
	w.want(intent, "created submitted confirmed")
}
