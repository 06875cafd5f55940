package watch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// A reported transaction is still an attempt after a reorganization.
func TestReorg_Reported(t *testing.T) {
	t.Parallel()
	for name, asset := range map[string]string{"ERC-20": usdc, "native": native} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			intent, tx := w.reported(asset)
			w.mine(sepolia, tx)
			w.deepen(sepolia, confirmations)
			w.want(intent, "created submitted confirmed")
			w.chains[sepolia].Reorg(confirmations+1, nil, nil, nil, nil, nil)
			w.tick(sepolia)
			w.want(intent, "created submitted confirmed submitted")
			w.wantTransactions(intent, "send pending")
			w.mine(sepolia, tx)
			w.deepen(sepolia, confirmations)
			w.want(intent, "created submitted confirmed submitted confirmed")
		})
	}
}

// A fill whose block falls before it is final never counted; a final one whose order falls does not count any more.
func TestReorg_Fill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	open := w.open(intent)
	w.mine(sepolia, open)
	w.deepen(sepolia, confirmations)
	fill := w.fill(intent)
	w.mine(baseSepolia, fill)
	w.deepen(baseSepolia, confirmations)
	w.chains[baseSepolia].Reorg(confirmations+1, nil, nil, nil, nil, nil)
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed")
	w.mine(baseSepolia, fill)
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed filled")
	w.chains[sepolia].Reorg(confirmations+1, nil, nil, nil, nil, []rpctest.Tx{open})
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed filled submitted")
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed filled submitted confirmed filled")
}

// A fill that falls leaves the order refunded, and where its order falls too, nothing is left of both.
func TestReorg_FilledAndRefunded(t *testing.T) {
	t.Parallel()
	t.Run("a fill that is not final", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		intent := w.confirmedBridge()
		w.mine(sepolia, w.refund(intent))
		w.deepen(sepolia, 2*confirmations)
		fill := w.fill(intent)
		w.mine(baseSepolia, fill)
		w.chains[baseSepolia].Reorg(1, nil, nil)
		w.deepen(baseSepolia, 2*confirmations)
		w.want(intent, "created submitted confirmed refunded")
		w.wantTransactions(intent, "open mined*", "refund mined*")
		w.mine(baseSepolia, fill)
		w.deepen(baseSepolia, 2*confirmations)
		w.want(intent, "created submitted confirmed refunded filled")
	})
	t.Run("a final fill, once the chain is resumed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		intent := w.confirmedBridge()
		w.mine(sepolia, w.refund(intent))
		w.mine(baseSepolia, w.fill(intent))
		w.deepen(baseSepolia, 2*confirmations)
		w.deepen(sepolia, 2*confirmations)
		w.want(intent, "created submitted confirmed filled")
		w.chains[baseSepolia].Reorg(2*confirmations+1, make([][]rpctest.Tx, 2*confirmations+2)...)
		w.tick(baseSepolia)
		w.want(intent, "created submitted confirmed filled")
		if err := w.store.Watched.Resume(t.Context(), baseSepolia, 15); err != nil {
			t.Fatal(err)
		}
		w.follow(baseSepolia)
		w.tick(baseSepolia)
		w.want(intent, "created submitted confirmed filled confirmed refunded")
	})
	t.Run("the order and its refund", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		intent := w.bridge()
		open, refund := w.open(intent), w.refund(intent)
		w.mine(baseSepolia, w.fill(intent))
		w.deepen(baseSepolia, 2*confirmations)
		w.mine(sepolia, open)
		w.mine(sepolia, refund)
		w.deepen(sepolia, confirmations)
		w.want(intent, "created submitted confirmed filled")
		w.chains[sepolia].Reorg(confirmations+2, make([][]rpctest.Tx, confirmations+3)...)
		w.tick(sepolia)
		w.want(intent, "created submitted confirmed filled created")
		w.wantTransactions(intent, "fill mined*")
		w.mine(sepolia, open, refund)
		w.deepen(sepolia, 2*confirmations)
		w.want(intent, "created submitted confirmed filled created submitted confirmed filled")
	})
}

// A reorganization of any depth up to the final block takes the order in it away, and the order counts again once it is mined again.
func TestReorg_EveryDepth(t *testing.T) {
	t.Parallel()
	for depth := 1; depth < 2*confirmations; depth++ {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.bridge()
			open := w.open(intent)
			w.mine(sepolia, open)
			w.deepen(sepolia, depth-1)
			before := "created submitted"
			if depth >= confirmations {
				before += " confirmed"
			}
			w.chains[sepolia].Reorg(depth, make([][]rpctest.Tx, depth+1)...)
			w.tick(sepolia)
			w.want(intent, before+" created") // nobody reported it
			w.mine(sepolia, open)
			w.deepen(sepolia, confirmations)
			w.want(intent, before+" created submitted confirmed")
			if w.count("intents_core_chain_reorgs_total") != 1 {
				t.Error("the reorganization is not counted")
			}
		})
	}
}

// I6: a final block that changes stops the chain, until an operator resumes it.
func TestReorg_FinalBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	open := w.open(intent)
	w.mine(sepolia, open)
	w.deepen(sepolia, 3*confirmations)
	w.want(intent, "created submitted confirmed")
	w.chains[sepolia].Reorg(3*confirmations+1, make([][]rpctest.Tx, 3*confirmations+2)...)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
	progress, err := w.store.Watched.Progress(t.Context(), sepolia)
	if err != nil || progress.Stopped == "" || w.count("intents_core_chain_stopped") != 1 {
		t.Fatalf("progress %+v, %v", progress, err)
	}
	if _, err := w.loops[sepolia].Tick(t.Context()); err == nil {
		t.Error("a stopped chain is read")
	}
	if err := w.store.Watched.Resume(t.Context(), sepolia, 15); err != nil {
		t.Fatal(err)
	}
	w.follow(sepolia)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed created")
	w.mine(sepolia, open)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted confirmed created submitted confirmed")
}

// I5: reading blocks again changes nothing.
func TestFollow_Replayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bridge, refunded, both, sent := w.bridge(), w.bridge(), w.bridge(), w.intent(transferOf(usdc))
	pay := w.pay(sent)
	w.report(sent, w.hash(pay))
	w.mine(sepolia, w.open(bridge), w.open(refunded), w.open(both), pay)
	w.mine(baseSepolia, w.fill(bridge), w.fill(both))
	w.mine(sepolia, w.finalise(bridge), w.refund(refunded), w.refund(both))
	w.deepen(sepolia, 2*confirmations)
	w.deepen(baseSepolia, 2*confirmations)
	for range 3 {
		w.want(bridge, "created submitted confirmed filled")
		w.want(both, "created submitted confirmed refunded filled")
		w.want(refunded, "created submitted confirmed refunded")
		w.want(sent, "created submitted confirmed")
		for id := range w.chains {
			if err := w.store.Watched.Resume(t.Context(), id, 1); err != nil {
				t.Fatal(err)
			}
			w.follow(id)
			w.tick(id)
			w.deepen(id, 2*confirmations)
		}
	}
}

// I6 where no poll fell on the blocks between: a chain that was idle, or one with many blocks a poll.
func TestReorg_FinalBlockBetweenPolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent, tx := w.reported(usdc)
	w.chains[sepolia].Mine(tx)
	w.chains[sepolia].MineEmpty(2 * confirmations)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
	w.chains[sepolia].Reorg(2*confirmations+1, make([][]rpctest.Tx, 2*confirmations+2)...)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed")
	if progress, err := w.store.Watched.Progress(t.Context(), sepolia); err != nil || progress.Stopped == "" {
		t.Errorf("progress %+v, %v", progress, err)
	}
}

// Two intents of an account are paid by equal logs of one transaction. A reorganization that moves the logs leaves both paid.
func TestReorg_EqualPaymentsMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after int }{"down": {1, 0}, "up": {0, 1}, "by two": {2, 0}, "not": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			first, second := w.intent(transferOf(usdc)), w.intent(transferOf(usdc))
			both := w.pay(first)
			both.Logs = append(both.Logs, payment(second))
			others := func(n int) (txs []rpctest.Tx) {
				for range n {
					txs = append(txs, w.tx(bob, rpctest.Log{}))
				}
				return txs
			}
			w.report(first, w.hash(both))
			w.report(second, w.hash(both))
			w.mine(sepolia, append(others(c.before), both)...)
			w.wantTransactions(first, "send mined")
			w.wantTransactions(second, "send mined")
			w.chains[sepolia].Reorg(1, append(others(c.after), both), nil)
			w.tick(sepolia)
			w.deepen(sepolia, confirmations)
			w.want(first, "created submitted confirmed")
			w.want(second, "created submitted confirmed")
		})
	}
}

// The equal payments of a batch are told apart by their place: the first intent has the first log, also after a reorganization that moves them.
func TestReorg_EqualPaymentsOfBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	const count = 20
	intents := make([]*transfer.Intent, count)
	for n := range intents {
		intents[n] = w.intent(transferOf(usdc))
	}
	slices.SortFunc(intents, func(a, b *transfer.Intent) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	all := w.pay(intents[0])
	for _, other := range intents[1:] {
		all.Logs = append(all.Logs, payment(other))
	}
	for _, n := range rand.Perm(count) {
		w.report(intents[n], w.hash(all))
	}
	inOrder := func(when string, first int64) {
		t.Helper()
		for n, intent := range intents {
			if index := pgtest.LookUp[int64](t, w.store, `SELECT log_index FROM transactions WHERE transfer_id = $1`, intent.ID); index != first+int64(n) {
				t.Errorf("%s, intent %d has log %d, want %d", when, n, index, first+int64(n))
			}
		}
	}
	w.mine(sepolia, all)
	w.tick(sepolia)
	inOrder("at first", 0)
	w.chains[sepolia].Reorg(1, []rpctest.Tx{w.tx(bob, rpctest.Log{}, rpctest.Log{}), all}, nil)
	w.tick(sepolia)
	w.deepen(sepolia, confirmations)
	inOrder("after a reorganization", 2)
	for _, intent := range intents {
		w.want(intent, "created submitted confirmed")
	}
	w.chains[sepolia].Reorg(confirmations+2, make([][]rpctest.Tx, confirmations+3)...)
	w.tick(sepolia)
	for _, intent := range intents {
		w.want(intent, "created submitted confirmed submitted")
	}
}

// Two orders that one transaction opens keep their events when a reorganization moves the logs.
func TestReorg_EventsMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	first, second := w.bridge(), w.bridge()
	both := w.open(first)
	both.Logs = append(both.Logs, w.open(second).Logs...)
	w.mine(sepolia, both)
	w.chains[sepolia].Reorg(1, []rpctest.Tx{w.tx(bob, rpctest.Log{}), both}, nil)
	w.tick(sepolia)
	w.deepen(sepolia, confirmations)
	w.want(first, "created submitted confirmed")
	w.want(second, "created submitted confirmed")
}
