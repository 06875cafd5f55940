package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
)

// start runs the watcher until the test ends or stop is called.
func (w *world) start() (stop func()) {
	pgtest.Exec(w.T, w.store, "UPDATE watched_chains SET lease_until = '-infinity'")
	ctx, cancel := context.WithCancel(w.Context())
	watcher := w.watcher
	var running sync.WaitGroup
	running.Go(func() { watcher.Run(ctx) })
	running.Go(func() { watcher.RunReports(ctx) })
	stop = func() { cancel(); running.Wait() }
	w.Cleanup(stop)
	return stop
}

// eventually waits for a status.
func (w *world) eventually(intent *transfer.Intent, want transfer.Status) {
	w.Helper()
	asynctest.Eventually(w.T, "an intent that is "+string(want), func() bool {
		stored, err := w.store.Intents.Transfer(w.Context(), intent.AccountID, intent.ID)
		return err == nil && stored.Status == want
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	stop := w.start()
	bridge, sent := w.bridge(), w.intent(transferOf(usdc))
	pay := w.pay(sent)
	w.chains[sepolia].Submit(pay)
	w.report(sent, w.hash(pay))
	w.watcher.Reported(sepolia, sent.AccountID, sent.ID, w.hash(pay))
	asynctest.Eventually(t, "the sender of the reported transaction", func() bool {
		transactions, err := w.store.Intents.Transactions(t.Context(), sent.AccountID, sent.ID)
		return err == nil && len(transactions) == 1 && transactions[0].Sender != nil
	})
	w.chains[sepolia].Mine(w.open(bridge), pay)
	w.chains[sepolia].MineEmpty(confirmations)
	w.eventually(sent, transfer.Confirmed)
	w.chains[baseSepolia].Mine(w.fill(bridge))
	w.chains[baseSepolia].MineEmpty(2 * confirmations)
	w.eventually(bridge, transfer.Filled)

	// Another process takes over at once.
	stop()
	if n := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM watched_chains WHERE lease_until > now()"); n != 0 {
		t.Errorf("%d leases are held after the end", n)
	}
	w.connect()
	w.start()
	refunded := w.bridge()
	w.chains[sepolia].Mine(w.open(refunded), w.refund(refunded))
	w.chains[sepolia].MineEmpty(2 * confirmations)
	w.eventually(refunded, transfer.Refunded)
}

// A chain that no unfinished intent touches is left alone, and a new intent has it looked at again. A refunded order is finished.
func TestRun_Idle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start()
	node := w.nodes[sepolia][0]
	quiet := func() bool {
		before := node.Requests()
		<-time.After(500 * time.Millisecond) // five ticks
		return node.Requests() == before
	}
	asynctest.Eventually(t, "an idle chain", quiet)
	intent := w.bridge()
	w.chains[sepolia].Mine(w.open(intent))
	w.chains[sepolia].MineEmpty(confirmations)
	w.eventually(intent, transfer.Confirmed)
	w.chains[sepolia].Mine(w.refund(intent))
	w.chains[sepolia].MineEmpty(2 * confirmations)
	w.eventually(intent, transfer.Refunded)
	pgtest.Exec(t, w.store, "DELETE FROM chain_activity")
	asynctest.Eventually(t, "an idle chain after the refund", quiet)
}

// Two watchers never follow one chain, and the work of one that is killed is taken over when its lease runs out.
func TestRun_TwoWatchers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start()
	w.connect()
	w.start()
	var intents []*transfer.Intent
	for range 20 {
		intents = append(intents, w.bridge())
	}
	for _, intent := range intents {
		w.chains[sepolia].Mine(w.open(intent))
	}
	w.chains[sepolia].MineEmpty(confirmations)
	for _, intent := range intents {
		w.eventually(intent, transfer.Confirmed)
		w.want(intent, "created submitted confirmed")
	}
}

// A backlog is caught up range by range, as large as the provider allows.
func TestRun_Backlog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	first, last := w.bridge(), w.bridge()
	w.fault(0, func(f *rpctest.Faults) { f.RangeLimit = 300 })
	w.chains[sepolia].Mine(w.open(first))
	w.chains[sepolia].MineEmpty(10_000)
	w.chains[sepolia].Mine(w.open(last))
	w.chains[sepolia].MineEmpty(confirmations)
	w.tick(sepolia)
	w.want(first, "created submitted confirmed")
	w.want(last, "created submitted confirmed")
	// The ranges grow and shrink around 250 blocks, and each is read twice.
	calls := w.nodes[sepolia][0].Calls()
	if n := calls["eth_getLogs"]; n < 2*10_000/300 || n > 3*10_000/250 {
		t.Errorf("10,000 blocks took %v", calls)
	}
	t.Logf("10,000 blocks took %v", calls)
}

// An event that a provider left out of a backlog is found when the block is read again: by the other provider, or by the same one if
// there is no other.
func TestBacklog_ReadTwice(t *testing.T) {
	t.Parallel()
	for _, providers := range []int{1, 2} {
		t.Run(fmt.Sprint(providers, " providers"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, providers)
			var intents []*transfer.Intent
			for range 10 {
				intent := w.bridge()
				w.chains[sepolia].MineEmpty(9)
				w.chains[sepolia].Mine(w.open(intent))
				intents = append(intents, intent)
			}
			w.chains[sepolia].MineEmpty(50)
			for _, node := range w.nodes[sepolia] {
				node.Set(func(f *rpctest.Faults) { f.RangeLimit = 20 })
			}
			for more, poll := true, 0; more; poll++ {
				w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = providers > 1 || poll%2 == 0 })
				more, _ = w.loops[sepolia].Tick(t.Context())
			}
			w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = false })
			w.deepen(sepolia, 1)
			w.wantConfirmed(intents)
		})
	}
}

// A provider whose range is smaller than the chain's depth is asked several times in one poll.
func TestTick_RangeBelowDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.fault(0, func(f *rpctest.Faults) { f.RangeLimit = 2 })
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, 3*confirmations)
	w.mine(sepolia, w.refund(intent))
	w.deepen(sepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed refunded")
	again, err := w.loops[sepolia].Tick(t.Context())
	if again || err != nil {
		t.Errorf("the head is read and there is more: %t, %v", again, err)
	}
}

// The first poll of a chain begins before the orders that were opened while nobody looked.
func TestTick_FirstPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.chains[sepolia].SetTime(time.Now())
	w.chains[sepolia].Mine(w.open(intent))
	w.chains[sepolia].MineEmpty(5 * confirmations)
	for _, table := range []string{"watched_chains", "chain_anchors"} {
		pgtest.Exec(t, w.store, "DELETE FROM "+table)
	}
	w.follow(sepolia)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
}

// A node that has pruned the first blocks does not keep the first poll of a chain from reading what it has.
func TestTick_FirstPollPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.chains[sepolia].SetTime(time.Now())
	w.chains[sepolia].Mine(w.open(intent))
	w.chains[sepolia].MineEmpty(5 * confirmations)
	w.fault(0, func(f *rpctest.Faults) { f.PrunedBelow = 10 })
	for _, table := range []string{"watched_chains", "chain_anchors"} {
		pgtest.Exec(t, w.store, "DELETE FROM "+table)
	}
	w.follow(sepolia)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
}
