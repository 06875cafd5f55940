package watch_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
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
	if _, err := w.store.Intents.ReportTransaction(t.Context(), access.OfOperator, early.AccountID, []uuid.UUID{early.ID}, w.hash(second)); !errors.Is(err, intents.ErrExecuted) {
		t.Errorf("another transaction after that: %v", err)
	}
}

// A chain whose finality is a tag confirms at the tag, whatever its confirmations are, and what is below finalized is final.
func TestFollow_FinalityTag(t *testing.T) {
	t.Parallel()
	for finality, confirms := range map[registry.Finality]int{registry.Safe: 2, registry.Finalized: 4} {
		t.Run(string(finality), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			pgtest.Exec(t, w.store, "UPDATE chains SET finality = $1 WHERE id = 'eip155:11155111'", finality)
			if err := w.live.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.chains[sepolia].SetTag("safe", 2)
			w.chains[sepolia].SetTag("finalized", 4)
			intent := w.bridge()
			w.mine(sepolia, w.open(intent))
			for mined := 1; mined <= 5; mined++ {
				w.mine(sepolia)
				want := "created submitted"
				if mined >= confirms {
					want += " confirmed"
				}
				w.want(intent, want)
			}
			progress, err := w.store.Watched.Progress(t.Context(), sepolia)
			if head := w.chains[sepolia].Head().Number; err != nil || progress.Final != head-4 {
				t.Errorf("block %d is final at block %d, %v", progress.Final, head, err)
			}
		})
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

// An event counts only from the settler and the chain that the intent's own settlement names, and a fill only with the order's own output:
// anybody can have the real settler emit OutputFilled for any order id.
func TestFollow_ForeignEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.confirmedBridge()
	filledOnSource, filledByStranger, refundedOnDestination, otherOutput := w.fill(intent), w.fill(intent), w.refund(intent), w.fill(intent)
	filledOnSource.Logs[0].Address = common.HexToAddress(intent.Settlement.InputSettler)
	filledByStranger.Logs[0].Address = common.HexToAddress("0xbad")
	refundedOnDestination.Logs[0].Address = common.HexToAddress(intent.Settlement.OutputSettler)
	otherOutput.Logs[0].Data[len(otherOutput.Logs[0].Data)-1] = 1 // its context has another length
	w.mine(sepolia, filledOnSource)
	w.mine(baseSepolia, filledByStranger, refundedOnDestination, otherOutput)
	w.deepen(sepolia, 2*confirmations)
	w.deepen(baseSepolia, 2*confirmations)
	w.want(intent, "created submitted confirmed")
	if n := w.count("intents_core_chain_unmatched_events_total"); n != 3 { // the stranger is no settler, so its events are not read
		t.Errorf("%v unmatched events are counted", n)
	}
}

// I7: an order that is filled and refunded is filled, whichever of the two is seen first: its solver never claimed, and the recipient has the
// money.
func TestFollow_FilledAndRefunded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps string
		way   string
	}{
		"the refund first":          {"open refund fill", "created submitted confirmed refunded filled"},
		"the fill first":            {"open fill refund", "created submitted confirmed filled"},
		"the fill before its order": {"fill open refund", "created submitted confirmed filled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			intent := w.bridge()
			for step := range strings.FieldsSeq(c.steps) {
				switch step {
				case "open":
					w.mine(sepolia, w.open(intent))
					w.deepen(sepolia, confirmations)
				case "fill":
					w.mine(baseSepolia, w.fill(intent))
					w.deepen(baseSepolia, 2*confirmations)
				case "refund":
					w.mine(sepolia, w.refund(intent))
					w.deepen(sepolia, 2*confirmations)
				}
			}
			w.want(intent, c.way)
			if n := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE confirmed_at IS NOT NULL"); n != 3 {
				t.Errorf("%d of 3 transactions are recorded and confirmed", n)
			}
		})
	}
}

// An order is followed at the contracts of its own settlement after its chains were imported with others, or with none.
func TestFollow_Reimported(t *testing.T) {
	t.Parallel()
	for name, settlements := range map[string]string{
		"others": `[{"scheme":"oif-v1/StandardOrder","deployment":"next","inputSettler":"0x00000000000000000000000000000000000000A1",
			"outputSettler":"0x00000000000000000000000000000000000000A2","oracle":"0x00000000000000000000000000000000000000A3","claimPeriod":60,"sameChain":true}]`,
		"none": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			filled, refunded := w.confirmedBridge(), w.confirmedBridge()
			pgtest.Exec(t, w.store, "UPDATE chains SET settlements = $1::jsonb", settlements)
			if err := w.live.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.mine(baseSepolia, w.fill(filled))
			w.mine(sepolia, w.refund(refunded))
			w.deepen(baseSepolia, 2*confirmations)
			w.deepen(sepolia, 2*confirmations)
			w.want(filled, "created submitted confirmed filled")
			w.want(refunded, "created submitted confirmed refunded")
		})
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

// The settler opened another order than the intent's.
func TestFollow_OtherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	intent := w.bridge()
	tx := w.open(intent)
	tx.Logs[1].Topics[1] = common.Hash{1}
	w.report(intent, w.hash(tx))
	w.mine(sepolia, tx)
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed")
	w.wantTransactions(intent, "open order_mismatch*")
	w.wantReason(intent, "ORDER_ID_MISMATCH", common.Hash{1}.Hex())
	// The client sends the right one after all.
	w.mine(sepolia, w.open(intent))
	w.deepen(sepolia, confirmations)
	w.want(intent, "created submitted failed submitted confirmed")
}
