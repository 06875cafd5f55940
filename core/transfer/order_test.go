package transfer_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// The chains and contracts of newIntent's settlement.
const (
	inputSettler  = "0x00fC00edbe7C003b006f870068c548940000223e"
	outputSettler = "0x75220B7600c300005038432a0000f308e0000068"
	oracle        = "0xa70fe63DD97e8e0cb37241Ed231fcBca87e99b72"
	otherOracle   = "0xC401b53377b8a71a7cEB820e6A4DC53832343a90"
)

// newIntent is an intent that sends an ERC-20 token, with its order id.
func newIntent(kind transfer.Type) *transfer.Intent {
	now := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	intent := &transfer.Intent{
		ID: uuid.MustParse("0199a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a69"), Type: kind, Status: transfer.Created,
		Source:      leg(sepolia, alice, usdc, "1000000"),
		Destination: leg(baseSepolia, bob, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "990000"),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: "lifi-v2", InputSettler: inputSettler, OutputSettler: outputSettler,
			InputOracle: oracle, OutputOracle: otherOracle, Expires: now.Add(5 * time.Hour),
		},
		Deadline: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
	order, err := intent.Order()
	if err != nil {
		panic(err)
	}
	intent.OrderID = order.ID()
	return intent
}

// abi is the order as go-ethereum's encoder takes it.
func (o recordedOrder) abi() abiOrder {
	out := abiOrder{
		User: o.User, Nonce: bigInt(o.Nonce), OriginChainId: bigInt(o.OriginChainID), Expires: o.Expires, FillDeadline: o.FillDeadline,
		InputOracle: o.InputOracle,
	}
	for _, input := range o.Inputs {
		out.Inputs = append(out.Inputs, [2]*big.Int{bigInt(input[0]), bigInt(input[1])})
	}
	for _, output := range o.Outputs {
		out.Outputs = append(out.Outputs, abiOutput{
			Oracle: output.Oracle, Settler: output.Settler, ChainId: bigInt(output.ChainID), Token: output.Token, Amount: bigInt(output.Amount),
			Recipient: output.Recipient, CallbackData: output.CallbackData, Context: output.Context,
		})
	}
	return out
}

// The id of every recorded order is that of the formula, and that of its intent where an intent can have the order.
func TestIntent_OrderRecorded(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	type row struct {
		settler common.Address
		recordedCase
	}
	var rows []row
	for _, v := range r.Vectors {
		rows = append(rows, row{v.Settler, recordedCase{Name: v.Name, OrderID: v.OrderID, Order: v.Order, Encoded: v.Encoded}})
	}
	for _, c := range r.Cases {
		rows = append(rows, row{r.settler(c), c})
	}
	expressible := 0
	for _, c := range rows {
		order := c.Order.abi()
		encoded := order.encoded()
		elsewhere := c.Name == "open on the wrong chain" // where the contract asked identifies orders by its own chain
		if elsewhere {
			order.OriginChainId, c.settler = new(big.Int).SetUint64(r.Chains[1].ChainID), r.Chains[1].InputSettler
		}
		packed := order.packed(c.settler)
		if id := crypto.Keccak256Hash(packed); id != c.OrderID {
			t.Errorf("%s: by the formula the id is %s, recorded %s", c.Name, id, c.OrderID)
		}
		if len(c.Encoded) > 0 && hexed(encoded) != c.Encoded.String() {
			t.Errorf("%s: go-ethereum encodes another order than the recorded one", c.Name)
		}
		if !c.Order.expressible() || elsewhere {
			continue
		}
		expressible++
		intent := c.Order.intent(c.settler)
		got := encodings(t, intent)
		want := map[string]string{
			"packed": hexed(packed), "id": c.OrderID.Hex(), "open": "0x7515fd56" + common.Bytes2Hex(encoded), "refund": "0x48f49eaf" + common.Bytes2Hex(encoded),
		}
		for name := range want {
			if diff := cmp.Diff(want[name], got[name]); diff != "" {
				t.Errorf("%s: %s (-recorded +built):\n%s", c.Name, name, diff)
			}
		}
	}
	if expressible < 40 {
		t.Errorf("only %d orders are those of an intent", expressible)
	}
}

// A client recomputes the id from these fields alone.
func TestIntent_Order(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	got, err := intent.Order()
	if err != nil {
		t.Fatal(err)
	}
	nonce, _ := new(big.Int).SetString("0199a1b2c3d47e5f8a6b0c1d2e3f4a69", 16)
	want := &transfer.Order{
		InputSettler: inputSettler, User: alice, Nonce: nonce, OriginChainID: 11155111,
		Expires: uint32(intent.Settlement.Expires.Unix()), FillDeadline: uint32(intent.Deadline.Unix()), InputOracle: oracle,
		Input: transfer.Input{Token: usdc, Amount: big.NewInt(1_000_000)},
		Output: transfer.MandateOutput{
			Oracle: padded(otherOracle), Settler: padded(outputSettler), ChainID: 84532,
			Token: padded(intent.Destination.Token.Address), Amount: big.NewInt(990_000), Recipient: padded(bob),
		},
		Encoded: abiOf(intent).packed(common.HexToAddress(inputSettler)),
	}
	if diff := cmp.Diff(want, got, bigInts, cmpopts.IgnoreUnexported(transfer.Order{})); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// The order of a transfer is that of no contract, and is never opened.
func TestIntent_OrderOfTransfer(t *testing.T) {
	t.Parallel()
	const zero = "0x0000000000000000000000000000000000000000"
	intent := newIntent(transfer.Transfer)
	intent.Destination = leg(sepolia, bob, usdc, "1000000")
	intent.Settlement = transfer.Settlement{Scheme: registry.StandardOrder, Expires: intent.Deadline}
	order, err := intent.Order()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{order.InputSettler, order.InputOracle, order.Output.Settler, order.Output.Oracle, order.Expires, intent.HasOrder()}
	if diff := cmp.Diff([]any{zero, zero, [32]byte{}, [32]byte{}, uint32(intent.Deadline.Unix()), false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if id := order.ID(); id != crypto.Keccak256Hash(abiOf(intent).packed(common.Address{})) {
		t.Errorf("the id is %x", id)
	}
}

// An intent that was recorded under another scheme has no order: nothing is opened, recognized or refunded for it. A plain transfer works.
func TestIntent_OlderScheme(t *testing.T) {
	t.Parallel()
	swap, log := newIntent(transfer.Swap), fillLog(newIntent(transfer.Bridge))
	swap.Source.Account.Chain, swap.Destination.Account.Chain = baseSepolia, baseSepolia
	swap.Settlement.Scheme = "erc7683-v1/OrderData"
	if order, err := swap.Order(); !errors.Is(err, transfer.ErrScheme) {
		t.Errorf("the order is %+v, %v", order, err)
	}
	if tx, err := swap.Refund(); !errors.Is(err, transfer.ErrScheme) {
		t.Errorf("the refund is %+v, %v", tx, err)
	}
	if call, err := swap.FillRecordCall(); !errors.Is(err, transfer.ErrScheme) {
		t.Errorf("the question for the fill is %x, %v", call, err)
	}
	if tx, err := swap.Tx(transfer.Moment{Now: swap.CreatedAt, BlockTime: time.Second}); tx != nil || err != nil {
		t.Errorf("the transaction is %+v, %v", tx, err)
	}
	log.Topics[1] = swap.OrderID
	if seen, ok := swap.MatchLog(baseSepolia, log); ok {
		t.Errorf("a fill matches: %+v", seen)
	}
	// What it did is not known, so the intent does not fail.
	if state, _ := swap.Classify(transfer.Inclusion{Receipt: evm.Receipt{Succeeded: true, Logs: []evm.Log{log}}}); state != transfer.Unsupported {
		t.Errorf("a transaction in a block is %s", state)
	}
	swap.Status = transfer.Confirmed
	if swap.Refundable(transfer.History{SourceReadUntil: swap.Settlement.Expires.Add(time.Hour)}) || swap.Awaits(transfer.Transaction{State: transfer.Mined, Role: transfer.RoleOpen}) {
		t.Error("it awaits an outcome or is refundable")
	}
	payment := newIntent(transfer.Transfer)
	payment.Settlement = transfer.Settlement{Scheme: "erc7683-v1/OrderData"}
	tx, err := payment.Tx(transfer.Moment{Now: payment.CreatedAt, BlockTime: time.Second})
	if err != nil || tx.To != usdc || tx.Chain != sepolia {
		t.Errorf("the transaction of a transfer is %+v, %v", tx, err)
	}
}
