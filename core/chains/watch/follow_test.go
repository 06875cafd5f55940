package watch_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/transfer"
)

// A bridge is confirmed at depth, filled once the fill is final on its chain, and only then.
func TestFollow_Bridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.openBridge()
	w.want(intent, "created submitted")
	w.deepen(sepolia, confirmations-2)
	w.want(intent, "created submitted")
	w.deepen(sepolia, 1)
	w.want(intent, "created submitted confirmed")
	w.mine(baseSepolia, w.fill(intent))
	w.deepen(baseSepolia, 2*confirmations-2)
	w.want(intent, "created submitted confirmed")
	w.deepen(baseSepolia, 1)
	w.want(intent, "created submitted confirmed filled")
	w.wantTransactions(intent, "open mined*", "fill mined*")
}

// The client's report and the settler's event are about one transaction.
func TestFollow_ReportedOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	early, late := w.bridge(), w.bridge()
	first, second := w.open(early), w.open(late)
	w.report(early, w.hash(first))
	w.mine(sepolia, first, second)
	w.report(late, w.hash(second))
	w.tick(sepolia)
	w.deepen(sepolia, confirmations)
	w.want(early, "created submitted confirmed")
	w.want(late, "created submitted confirmed")
	w.wantTransactions(early, "open mined*")
	w.report(early, w.hash(first)) // it confirmed the intent, so the same report is no error
	if _, _, err := w.store.Chains.ReportTransaction(t.Context(), early.AccountID, early.ID, w.hash(second)); !errors.Is(err, transfer.ErrTransition) {
		t.Errorf("another transaction after that: %v", err)
	}
}

// I7: the chains are read by loops of their own, so a fill may be known before its order.
func TestFollow_FillBeforeOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	w.mine(baseSepolia, w.fill(intent))
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created")
	w.chains[sepolia].Mine(w.open(intent))
	w.chains[sepolia].MineEmpty(confirmations)
	w.tick(sepolia)
	w.want(intent, "created submitted confirmed filled")
}

// An event counts only from the settler and the chain that the intent's own settlement names.
func TestFollow_ForeignEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	filledOnSource := w.answer(intent.Settlement.OriginSettler, "Filled(bytes32,bytes,bytes)", intent)
	filledByStranger := w.fill(intent)
	filledByStranger.Logs[0].Address = common.HexToAddress("0xbad")
	refundedOnDestination := w.answer(intent.Settlement.DestinationSettler, "Refunded(bytes32,address)", intent)
	w.mine(sepolia, filledOnSource)
	w.mine(baseSepolia, filledByStranger, refundedOnDestination)
	w.deepen(sepolia, 2*confirmations)
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed")
	if w.count("intents_core_chain_unmatched_events_total") == 0 {
		t.Error("unmatched events are not counted")
	}
}

// A reported transfer ends by what its transaction did.
func TestFollow_Transfer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asset  string
		change func(*rpctest.Tx)
		want   string
		state  string
	}{
		"ERC-20":                  {usdc, func(*rpctest.Tx) {}, "created submitted confirmed", "send mined*"},
		"native":                  {native, func(*rpctest.Tx) {}, "created submitted confirmed", "send mined*"},
		"reverted":                {usdc, func(tx *rpctest.Tx) { tx.Reverted, tx.Logs = true, nil }, "created submitted failed", "send reverted*"},
		"another amount":          {usdc, func(tx *rpctest.Tx) { tx.Logs[0].Data = common.BigToHash(big.NewInt(4)).Bytes() }, "created submitted failed", "send mismatch*"},
		"another recipient":       {usdc, func(tx *rpctest.Tx) { tx.Logs[0].Topics[2] = common.HexToHash(alice) }, "created submitted failed", "send mismatch*"},
		"another token":           {usdc, func(tx *rpctest.Tx) { tx.Logs[0].Address = common.HexToAddress("0xbad") }, "created submitted failed", "send mismatch*"},
		"no event":                {usdc, func(tx *rpctest.Tx) { tx.Logs = nil }, "created submitted failed", "send mismatch*"},
		"native, another amount":  {native, func(tx *rpctest.Tx) { tx.Value = big.NewInt(4) }, "created submitted failed", "send mismatch*"},
		"native, another sender":  {native, func(tx *rpctest.Tx) { tx.From = common.HexToAddress(bob) }, "created submitted failed", "send mismatch*"},
		"ERC-20, sent by another": {usdc, func(tx *rpctest.Tx) { tx.From = common.HexToAddress(bob) }, "created submitted confirmed", "send mined*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.intent(transferOf(c.asset))
			tx := w.pay(intent)
			c.change(&tx)
			w.report(intent, w.hash(tx))
			w.want(intent, "created submitted")
			w.mine(sepolia, tx)
			w.deepen(sepolia, confirmations-2)
			w.want(intent, "created submitted")
			w.deepen(sepolia, 1)
			w.want(intent, c.want)
			w.wantTransactions(intent, c.state)
		})
	}
}

// A native transfer out of a contract leaves no log: nothing is concluded.
func TestFollow_NativeFromContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.chains[sepolia].SetCode(common.HexToAddress(alice), []byte{1})
	intent := w.intent(transferOf(native))
	tx := w.pay(intent)
	tx.From = common.HexToAddress(bob)
	w.report(intent, w.hash(tx))
	w.mine(sepolia, tx)
	w.deepen(sepolia, 3*confirmations)
	w.want(intent, "created submitted")
	w.wantTransactions(intent, "send unsupported")
}

// A block that is much older than the intent holds another payment.
func TestFollow_OldPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.chains[sepolia].SetTime(w.store.Now().Add(-1000e9))
	model := w.intent(transferOf(usdc))
	tx := w.pay(model)
	w.mine(sepolia, tx)
	w.chains[sepolia].SetTime(w.store.Now())
	intent := w.intent(transferOf(usdc))
	w.report(intent, w.hash(tx))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed")
}

// Within an account one payment confirms one intent; another account may name the same one, and nobody can take it from the other.
func TestFollow_OnePaymentOneIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	first, second := w.intent(transferOf(usdc)), w.intent(transferOf(usdc))
	owner := w.owner
	w.owner = [16]byte{1}
	strangers := w.intent(transferOf(usdc))
	w.owner = owner
	tx := w.pay(first)
	for _, intent := range []*transfer.Intent{strangers, first, second} {
		w.report(intent, w.hash(tx))
	}
	w.mine(sepolia, tx)
	w.deepen(sepolia, confirmations)
	w.want(strangers, "created submitted confirmed")
	confirmed := 0
	for _, intent := range []*transfer.Intent{first, second} {
		if w.stored(intent).Status == transfer.Confirmed {
			confirmed++
		}
	}
	if confirmed != 1 {
		t.Errorf("one payment confirmed %d intents of the account", confirmed)
	}
}

// The settler opened another order: a stranger's call with our data has another sender.
func TestFollow_OtherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	tx := w.tx(intent.Settlement.OriginSettler, opened(intent.Settlement.OriginSettler, [32]byte{1}))
	w.report(intent, w.hash(tx))
	w.mine(sepolia, tx)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed")
	w.wantTransactions(intent, "open order_mismatch*")
	if failure := w.stored(intent).Failure; failure != "ORDER_ID_MISMATCH" {
		t.Errorf("failure %q", failure)
	}
	// The client sends the right one after all.
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed submitted confirmed")
}
