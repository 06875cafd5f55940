package watch_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// counts is how often the nodes of Sepolia were asked for a transaction count.
func (w *world) counts() (calls int) {
	for _, node := range w.nodes[sepolia] {
		calls += node.Calls()["eth_getTransactionCount"]
	}
	return calls
}

// cancelled has so many intents report a transaction each, which the sender then replaces by one without an effect.
func (w *world) cancelled(intents int) (all []*transfer.Intent) {
	w.Helper()
	var replacements []rpctest.Tx
	for range intents {
		intent := w.intent(transferOf(usdc))
		tx := w.pay(intent)
		w.chains[sepolia].Submit(tx)
		w.report(intent, w.hash(tx))
		all, replacements = append(all, intent), append(replacements, rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From})
	}
	w.tick(sepolia)
	w.chains[sepolia].Mine(replacements...)
	return all
}

func (w *world) failed(intents ...*transfer.Intent) (failed int) {
	w.Helper()
	for _, intent := range intents {
		if w.stored(intent).Status == transfer.Failed {
			failed++
		}
	}
	return failed
}

// Intents that name one transaction need one search for what replaced it.
func TestReplaced_OneSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var intents []*transfer.Intent
	for range 20 {
		intents = append(intents, w.intent(transferOf(usdc)))
	}
	tx := w.pay(intents[0])
	w.chains[sepolia].Submit(tx)
	for _, intent := range intents {
		w.report(intent, w.hash(tx))
	}
	w.tick(sepolia)
	w.chains[sepolia].Mine(rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From})
	w.chains[sepolia].MineEmpty(500)
	w.due()
	before := w.counts()
	w.tick(sepolia)
	if n := w.counts() - before; n > 2*20+2*20 { // one for each attempt and a search among 500 blocks, at two hosts
		t.Errorf("%d transaction counts", n)
	}
	if n := w.failed(intents...); n != len(intents) {
		t.Errorf("%d of %d intents have failed", n, len(intents))
	}
}

// A poll makes a bounded number of calls for searches; the next polls go on where it ended, and each ends. An account with many does
// not hold up that of another.
func TestReplaced_SearchBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.chains[sepolia].MineEmpty(300)
	w.tick(sepolia)
	hostile := w.cancelled(60)
	w.owner = uuid.New()
	stranger := w.cancelled(1)
	w.chains[sepolia].MineEmpty(1000)
	w.due()
	polls, strangers := 0, 0
	for w.failed(hostile...) < len(hostile) {
		if polls++; polls > 60 {
			t.Fatalf("%d of %d searches have ended after %d polls", w.failed(hostile...), len(hostile), polls)
		}
		before := w.counts()
		w.tick(sepolia)
		if n := w.counts() - before; n > 100+2*61 { // and the attempts' own nonces
			t.Fatalf("%d transaction counts in a poll", n)
		}
		if strangers == 0 && w.failed(stranger...) == 1 {
			strangers = polls
		}
	}
	if polls < 5 || strangers == 0 || strangers > 8 {
		t.Errorf("the stranger's search ended in poll %d of %d", strangers, polls)
	}
}
