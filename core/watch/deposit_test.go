package watch_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// An order that is open and holds no money is never confirmed, whoever reports it; a solver that fills it pays the recipient all the same.
func TestFollow_OpenWithoutDeposit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	found, reported, paid := w.bridge(), w.bridge(), w.bridge()
	first, second := w.tx(found.Settlement.InputSettler, rpctest.Opened(found)), w.tx(reported.Settlement.InputSettler, rpctest.Opened(reported))
	w.report(reported, w.hash(second))
	w.mine(sepolia, first, second, w.open(paid))
	w.deepen(sepolia, confirmations)
	w.want(found, "created submitted failed")
	w.want(reported, "created submitted failed")
	w.want(paid, "created submitted confirmed")
	w.wantTransactions(found, "open mismatch*")
	if n := w.count("intents_core_chain_unpaid_opens_total"); n != 2 {
		t.Errorf("%v orders without a deposit are counted", n)
	}
	w.mine(baseSepolia, w.fill(found))
	w.deepen(baseSepolia, 2*confirmations)
	w.want(found, "created submitted failed filled")
}

// An order on one chain that openForAndFinalise opens is confirmed and filled at once; its Open without Finalised is none.
func TestFollow_OpenAndFinalised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	finalised, reported, bare := w.intent(pgtest.SwapBody), w.intent(pgtest.SwapBody), w.intent(pgtest.SwapBody)
	at := func(i *transfer.Intent, logs ...rpctest.Log) rpctest.Tx {
		return w.tx(i.Settlement.InputSettler, logs...)
	}
	first := at(finalised, rpctest.OpenedToFinalise(finalised), rpctest.Filled(finalised), rpctest.Finalised(finalised))
	second := at(reported, rpctest.OpenedToFinalise(reported), rpctest.Filled(reported), rpctest.Finalised(reported))
	w.report(reported, w.hash(second))
	w.mine(sepolia, first, second, at(bare, rpctest.OpenedToFinalise(bare)))
	w.deepen(sepolia, 2*confirmations)
	w.want(finalised, "created submitted confirmed filled")
	w.want(reported, "created submitted confirmed filled")
	w.want(bare, "created submitted failed")
	if n := w.count("intents_core_chain_unpaid_opens_total"); n != 1 {
		t.Errorf("%v orders without a deposit are counted", n)
	}
}

// An opening whose receipt the polled provider cannot show is judged by another provider's, and does not hold up the others.
func TestFollow_OpenWithoutReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	hidden, shown := w.bridge(), w.bridge()
	tx := w.open(hidden)
	w.nodes[sepolia][0].Set(func(f *rpctest.Faults) {
		f.Receipts = map[common.Hash]func(*rpctest.Receipt){w.hash(tx): func(r *rpctest.Receipt) { r.Logs[0].TxHash = common.Hash{} }}
	})
	w.mine(sepolia, tx, w.open(shown))
	w.want(hidden, "created submitted")
	w.wantTransactions(hidden, "open pending")
	w.due()
	w.deepen(sepolia, confirmations+1)
	w.want(shown, "created submitted confirmed")
	w.want(hidden, "created submitted confirmed")
}
