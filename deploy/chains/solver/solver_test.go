package solver_test

import (
	"context"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/solver"

	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestRun_BridgesAndSwaps(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	before := w.bridge(1) // opened before the solver starts
	w.recordAndOpen(t, before)
	w.run(t)
	bridge, swap, nativeBridge, back := w.bridge(2), w.swap(3), w.bridge(4), w.bridge(5)
	nativeBridge.OutputToken = [32]byte{}
	for _, o := range []contractstest.OrderData{bridge, swap, nativeBridge} {
		w.recordAndOpen(t, o)
	}
	back.Sender, back.OutputToken = contractstest.Word(w.destination.Account(user)), w.originToken.Word()
	back.OriginDomain, back.DestinationDomain, back.DestinationSettler = destination, origin, w.originSettler.Word()
	w.record(t, back, "")
	w.destination.Send(t, user, 1000, w.destinationSettler, "open", back.Order())

	for _, o := range []contractstest.OrderData{before, bridge, swap, nativeBridge} {
		w.waitSettled(t, o)
	}
	w.waitLog(t, "settlement was sent", back.ID().Hex())
	for n, got := range []int64{
		balanceOf(t, w.destination, w.destinationToken, before.Recipient), balanceOf(t, w.destination, w.destinationToken, bridge.Recipient),
		balanceOf(t, w.origin, w.originToken, swap.Recipient), balanceOf(t, w.origin, w.originToken, back.Recipient),
		w.destination.Balance(t, common.BytesToAddress(nativeBridge.Recipient[:])).Int64(),
	} {
		if got != 990 {
			t.Errorf("recipient %d has %d", n, got)
		}
	}
	// One mint served both bridges.
	if got := balanceOf(t, w.destination, w.destinationToken, contractstest.Word(w.destination.Account(solverAccount))); got != 100*990-2*990 {
		t.Errorf("the solver has %d", got)
	}
}

func TestRun_SkipsOrders(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	fee := w.origin.Deploy(t, "TestToken", "Fee", "FEE", uint8(6), true)
	refundMe, unknownSettler, unknownDomain, notContract := w.swap(1), w.bridge(2), w.bridge(3), w.swap(4)
	late, tooMuch, refused := w.swap(5), w.swap(6), w.swap(7)
	unknownSettler.DestinationSettler = [32]byte{31: 1}
	unknownDomain.DestinationDomain = 31339
	notContract.OutputToken = contractstest.Word(common.HexToAddress("0xdead"))
	late.FillDeadline = uint32(time.Now().Unix()) + 5
	tooMuch.OutputToken, tooMuch.AmountOut = [32]byte{}, new(big.Int).Lsh(big.NewInt(1), 200)
	refused.OutputToken, refused.AmountOut = fee.Word(), big.NewInt(1000)
	w.record(t, refundMe, solver.RefundReference)
	w.open(t, refundMe)
	for _, o := range []contractstest.OrderData{unknownSettler, unknownDomain, notContract, late, tooMuch, refused} {
		w.recordAndOpen(t, o)
	}
	w.run(t)
	w.waitLog(t, refused.ID().Hex(), "PaymentFailed", `"last":true`)
	for _, c := range []struct {
		reason string
		o      contractstest.OrderData
	}{
		{"its reference asks for a refund", refundMe},
		{"its destination's settler is unknown", unknownSettler},
		{"its destination, the domain 31339, is unknown", unknownDomain},
		{"its output token is no contract", notContract},
		{"its deadline is too near", late},
		{"it asks for more of the native asset than there is", tooMuch},
	} {
		w.waitLog(t, c.o.ID().Hex(), c.reason)
	}
	next := w.swap(100)
	w.recordAndOpen(t, next)
	w.waitSettled(t, next)
	for _, o := range []contractstest.OrderData{refundMe, unknownSettler, unknownDomain, notContract, late, tooMuch, refused} {
		if got := status(t, w.origin, w.originSettler, o); got != "OPENED" {
			t.Errorf("order %s: status %s", o.ID(), got)
		}
		if n := w.lines("order is skipped", o.ID().Hex()); n > 1 {
			t.Errorf("order %s: %d lines", o.ID(), n)
		}
	}
	if n := w.lines("fill was refused", refused.ID().Hex()); n != 3 {
		t.Errorf("the refused fill was tried %d times", n)
	}
}

// Another account's order is filled too, later; what this account made is known by then.
func TestRun_OrderOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.add(`{"id":"evt_4bc1132c-c58f-5764-b82f-b9e1ad866439","type":"webhook.disabled","timestamp":"2026-11-21T04:50:08.256Z",` +
		`"environment":"test","sequence":null,"data":{"id":"01a1fc6f-cea0-7b16-87fe-c7933bb8a48e","url":"https://example.com/hooks","reason":"gone"}}`)
	theirs, ours := w.swap(1), w.swap(2)
	w.open(t, theirs)
	w.run(t)
	w.recordAndOpen(t, ours)
	w.waitSettled(t, ours)
	if got := status(t, w.origin, w.originSettler, theirs); got != "OPENED" {
		t.Errorf("status %s before the feed had time to name the order", got)
	}
	w.waitSettled(t, theirs)
}

func TestRun_Restart(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	bridge, swap := w.bridge(1), w.swap(2)
	w.recordAndOpen(t, bridge)
	w.recordAndOpen(t, swap)
	stop := w.run(t)
	w.waitSettled(t, bridge)
	w.waitSettled(t, swap)
	stop()

	// A third order was filled by a solver that ended before it sent the settlement.
	half := w.bridge(3)
	w.recordAndOpen(t, half)
	w.destination.Send(t, solverAccount, 0, w.destinationToken, "approve", w.destinationSettler.Address, big.NewInt(990))
	receiver := contractstest.Word(w.origin.Account(solverAccount))
	w.destination.Send(t, solverAccount, 0, w.destinationSettler, "fill", half.ID(), half.Encode(), receiver[:])
	w.run(t)
	w.waitSettled(t, half)
	after := w.bridge(4)
	w.recordAndOpen(t, after)
	w.waitSettled(t, after)
	if n := len(w.destination.Logs(t, w.destinationSettler, "Filled")); n != 3 {
		t.Errorf("%d fills on the destination, want 3", n)
	}
	if n := len(w.origin.Logs(t, w.originSettler, "Filled")); n != 1 {
		t.Errorf("%d fills on the origin, want 1", n)
	}
	if n := w.lines("fill was refused"); n > 0 {
		t.Errorf("%d fills were refused", n)
	}
}

func TestRun_DeadGateway(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.failures.Store(4) // with the pauses between them this takes longer than an order waits whose account is another
	refundMe, swap := w.swap(1), w.swap(2)
	w.record(t, refundMe, solver.RefundReference)
	w.open(t, refundMe)
	w.recordAndOpen(t, swap)
	w.run(t)
	w.waitLog(t, "does not work", "gateway", "503")
	w.waitLog(t, "works again", "gateway")
	w.waitSettled(t, swap)
	w.waitLog(t, "order is skipped", refundMe.ID().Hex())
	if n := w.lines("does not work", "gateway"); n != 1 {
		t.Errorf("%d lines of one outage", n)
	}

	w.expired.Add(1)
	another := w.swap(3)
	w.recordAndOpen(t, another)
	w.waitSettled(t, another)
}

func TestRun_DeadChain(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.destination.Down.Store(true)
	w.run(t)
	bridge, swap := w.bridge(1), w.swap(2)
	w.recordAndOpen(t, bridge)
	w.recordAndOpen(t, swap)
	w.waitSettled(t, swap) // the other chain's orders do not wait
	w.waitLog(t, "does not work", "eip155:31338", "503")
	w.destination.Down.Store(false)
	w.waitSettled(t, bridge)
	if down, up := w.lines("does not work", "eip155:31338"), w.lines("works again", "eip155:31338"); down != 1 || up != 1 {
		t.Errorf("%d and %d lines of one outage", down, up)
	}

	w.origin.Down.Store(true)
	w.waitLog(t, "does not work", "eip155:31337", "503")
	w.origin.Down.Store(false)
	again := w.bridge(3)
	w.recordAndOpen(t, again)
	w.waitSettled(t, again)
}

func TestRun_Config(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	good := solver.Chain{ID: "eip155:1", RPC: "http://127.0.0.1:1", Key: key}
	if err := solver.Run(ctx, solver.Config{Gateway: "http://127.0.0.1:1", APIKey: testKey, Chains: []solver.Chain{good}}); err != nil {
		t.Errorf("an ended context: %v", err)
	}
	err = solver.Run(ctx, solver.Config{Delay: -1, Chains: []solver.Chain{{ID: "eip155:x"}}})
	for _, fault := range []string{"gateway", "API key", "delay", `"eip155:x"`, "key of eip155:x"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("no fault %q in %v", fault, err)
		}
	}
}
