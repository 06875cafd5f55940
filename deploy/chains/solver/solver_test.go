package solver_test

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/solver"

	"intents.internal/deploy/chains/contracts"
	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestRun_BridgesAndSwaps(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	before := w.bridge(1) // opened before the solver starts
	w.recordAndOpen(t, before)
	// An allowance that is left has to be reset before it can be raised.
	w.destination.Send(t, solverAccount, 0, w.destination.token, "approve", w.destination.output.Address, big.NewInt(1))
	w.run(t)
	bridge, swap, nativeBridge, back := w.bridge(2), w.swap(3), w.bridge(4), w.order(w.destination, w.origin, 5)
	nativeBridge.Outputs[0].Token = [32]byte{}
	swap.Outputs[0].Amount = big.NewInt(997) // its price
	for _, o := range []contracts.StandardOrder{bridge, swap, nativeBridge, back} {
		w.recordAndOpen(t, o)
	}
	w.waitClaimed(t, before, bridge, swap, nativeBridge, back)
	for n, o := range []contracts.StandardOrder{before, bridge, swap, nativeBridge, back} {
		if got, want := w.paid(t, o), o.Outputs[0].Amount.Int64(); got != want {
			t.Errorf("recipient %d has %d, want %d", n, got, want)
		}
	}
	// One mint served both bridges.
	if got := contractstest.Read[*big.Int](t, w.destination.Chain, w.destination.token, "balanceOf", w.destination.Account(solverAccount)); got.Int64() != 100*990-2*990 {
		t.Errorf("the solver has %d", got)
	}
}

func TestRun_SkipsOrders(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	type row struct {
		reason string
		order  contracts.StandardOrder
	}
	rows := []row{{"its reference asks for a refund", w.swap(1)}}
	w.record(t, rows[0].order, solver.RefundReference)
	w.open(t, rows[0].order)
	for n, c := range []struct {
		reason string
		change func(o *contracts.StandardOrder, output *contracts.MandateOutput)
	}{
		{"its deadline is too near", func(o *contracts.StandardOrder, _ *contracts.MandateOutput) {
			o.FillDeadline = uint32(w.origin.Now(t).Unix()) + 5 // each block of the test's chains takes a second of theirs
		}},
		{"its output settler is unknown", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Settler[31]++ }},
		{"its oracles are unknown", func(o *contracts.StandardOrder, _ *contracts.MandateOutput) { o.InputOracle = w.origin.output.Address }},
		{"its oracles are unknown", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Oracle[31]++ }},
		{"its destination, the chain 31339, is unknown", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.ChainId = big.NewInt(31339) }},
		{"one input and one output", func(o *contracts.StandardOrder, _ *contracts.MandateOutput) { o.Inputs = append(o.Inputs, o.Inputs...) }},
		{"one input and one output", func(o *contracts.StandardOrder, _ *contracts.MandateOutput) {
			o.Outputs = append(o.Outputs, o.Outputs...)
		}},
		{"callback data or a context", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.CallbackData = []byte{1} }},
		{"callback data or a context", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Context = []byte{0} }},
		{"its token or recipient is no address", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Recipient[0] = 1 }},
		{"its token or recipient is no address", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Token[0] = 1 }},
		{"its output token is no contract", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Token[31]++ }},
		{"more than its input is worth", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Amount = big.NewInt(998) }},
		{"a token has no price", func(_ *contracts.StandardOrder, output *contracts.MandateOutput) { output.Token[31] += 2 }},
	} {
		o := w.bridge(int64(2 + n))
		c.change(&o, &o.Outputs[0])
		w.recordAndOpen(t, o)
		rows = append(rows, row{c.reason, o})
	}
	rows = append(rows, row{"than is paid for one order", w.openLarge(t, 98)}, row{"a token has no price", w.openUnpriced(t, 99)})
	// The recipient takes no native token.
	refused := w.bridge(100)
	refused.Outputs[0].Token, refused.Outputs[0].Recipient = [32]byte{}, w.destination.token.Word()
	w.recordAndOpen(t, refused)
	theirs := w.bridge(101)
	w.recordAndOpen(t, theirs)
	w.fill(t, theirs, contracts.Word(w.origin.Account(user)))
	w.run(t)
	w.waitLog(t, w.id(t, refused).Hex(), "FailedCall", `"last":true`)
	next := w.swap(102)
	w.recordAndOpen(t, next)
	w.waitClaimed(t, next)
	for _, row := range append(rows, row{"another solver has filled it", theirs}) {
		w.waitLog(t, w.id(t, row.order).Hex(), row.reason)
		if n := w.lines("order is skipped", w.id(t, row.order).Hex()); n != 1 {
			t.Errorf("%s: %d lines", row.reason, n)
		}
	}
	if n := w.lines("order was refused", w.id(t, refused).Hex()); n != 3 {
		t.Errorf("the refused order was tried %d times", n)
	}
	if n := len(w.destination.Logs(t, w.destination.output, "OutputFilled")); n != 1 {
		t.Errorf("%d fills on the destination, want only the other solver's", n)
	}
}

// openLarge opens an order that is worth its input, and a unit more than is paid for one order.
func (w *world) openLarge(t *testing.T, nonce int64) contracts.StandardOrder {
	t.Helper()
	o := w.swap(nonce)
	o.Inputs[0][1], o.Outputs[0].Amount = big.NewInt(2e12), big.NewInt(1e12+1)
	w.record(t, o, "")
	w.origin.Send(t, user, 2e12, w.origin.input, "open", o)
	return o
}

// openUnpriced opens an order of which the input is a token without a price.
func (w *world) openUnpriced(t *testing.T, nonce int64) contracts.StandardOrder {
	t.Helper()
	at, o := w.origin, w.swap(nonce)
	token := at.Deploy(t, "TestTether", "Other", "OTHER", uint8(6))
	o.Inputs[0][0] = new(big.Int).SetBytes(token.Address[:])
	at.Send(t, user, 0, token, "mint", at.Account(user), big.NewInt(1000))
	at.Send(t, user, 0, token, "approve", at.input.Address, big.NewInt(1000))
	w.record(t, o, "")
	at.Send(t, user, 0, at.input, "open", o)
	return o
}

// fill pays a bridge as a solver that has the token.
func (w *world) fill(t *testing.T, o contracts.StandardOrder, solver [32]byte) {
	t.Helper()
	to := w.destination
	to.Send(t, solverAccount, 0, to.token, "mint", to.Account(solverAccount), big.NewInt(990))
	to.Send(t, solverAccount, 0, to.token, "approve", to.output.Address, big.NewInt(990))
	to.Send(t, solverAccount, 0, to.output, "fillOrderOutputs", w.id(t, o), o.Outputs, big.NewInt(int64(o.FillDeadline)), solver[:])
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
	w.waitClaimed(t, ours)
	if got := w.paid(t, theirs); got != 0 {
		t.Errorf("filled before the feed had time to name the order")
	}
	w.waitClaimed(t, theirs)
}

// What the solver did before it ended it reads from the chains: it claims a fill that is not claimed, and pays nothing twice.
func TestRun_Restart(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	bridge, swap, half := w.bridge(1), w.swap(2), w.bridge(3)
	w.recordAndOpen(t, bridge)
	w.recordAndOpen(t, swap)
	stop := w.run(t)
	w.waitClaimed(t, bridge, swap)
	w.recordAndOpen(t, half)
	w.waitLog(t, "order was filled", w.id(t, half).Hex())
	stop()
	w.run(t)
	w.waitClaimed(t, half)
	after := w.bridge(4)
	w.recordAndOpen(t, after)
	w.waitClaimed(t, after)
	for _, o := range []contracts.StandardOrder{bridge, swap, half, after} {
		if got := w.paid(t, o); got != 990 {
			t.Errorf("order %s: the recipient has %d", o.Nonce, got)
		}
	}
	if n := w.lines("order was refused"); n > 0 {
		t.Errorf("%d orders were refused", n)
	}
}

func TestRun_DeadGateway(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.failures.Store(12) // four times three tries: with the pauses this takes longer than an order waits whose account is another
	refundMe, swap := w.swap(1), w.swap(2)
	w.record(t, refundMe, solver.RefundReference)
	w.open(t, refundMe)
	w.recordAndOpen(t, swap)
	w.run(t)
	w.waitLog(t, "does not work", "gateway", "503")
	w.waitLog(t, "works again", "gateway")
	w.waitClaimed(t, swap)
	w.waitLog(t, "order is skipped", w.id(t, refundMe).Hex())
	if n := w.lines("does not work", "gateway"); n != 1 {
		t.Errorf("%d lines of one outage", n)
	}

	w.expired.Add(1)
	another := w.swap(3)
	w.recordAndOpen(t, another)
	w.waitClaimed(t, another)
}

func TestRun_DeadChain(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.destination.Down.Store(true)
	w.run(t)
	bridge, swap := w.bridge(1), w.swap(2)
	w.recordAndOpen(t, bridge)
	w.recordAndOpen(t, swap)
	w.waitClaimed(t, swap) // the other chain's orders do not wait
	w.waitLog(t, "does not work", "eip155:31338", "503")
	w.destination.Down.Store(false)
	w.waitClaimed(t, bridge)
	w.waitLog(t, "order was claimed", w.id(t, bridge).Hex())
	w.waitLog(t, "works again", "eip155:31338")
	if down, up := w.lines("does not work", "eip155:31338"), w.lines("works again", "eip155:31338"); down != 1 || up != 1 {
		t.Errorf("%d and %d lines of one outage", down, up)
	}

	w.origin.Down.Store(true)
	w.waitLog(t, "does not work", "eip155:31337", "503")
	w.origin.Down.Store(false)
	again := w.bridge(3)
	w.recordAndOpen(t, again)
	w.waitClaimed(t, again)
}

// A solver that cannot serve its quotes ends.
func TestRun_QuotesFail(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	config := solver.Config{Gateway: w.URL, APIKey: testKey, Chains: []solver.Chain{w.origin.config()}, Quotes: listener, Log: slog.New(slog.DiscardHandler)}
	if err := solver.Run(t.Context(), config); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want that the listener is closed", err)
	}
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
	err = solver.Run(ctx, solver.Config{Delay: -1, Chains: []solver.Chain{{ID: "eip155:x"}}, Prices: []solver.Price{
		{Token: common.Address{1}, Decimals: 37, Cents: 1}, {Token: common.Address{2}},
	}})
	for _, fault := range []string{"gateway", "API key", "delay", `"eip155:x"`, "key of eip155:x", "price of 0x01", "price of 0x02"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("no fault %q in %v", fault, err)
		}
	}
}
