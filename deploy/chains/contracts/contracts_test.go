package contracts_test

import (
	"encoding/binary"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts"
	"intents.internal/deploy/chains/contracts/contractstest"
)

const chainID = 31337

func TestTestToken(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	token := c.Deploy(t, "TestToken", "Test", "TEST", uint8(6), true)
	c.Send(t, 1, 0, token, "mint", c.Account(1), big.NewInt(1000))
	c.Send(t, 1, 0, token, "transfer", c.Account(2), big.NewInt(1000))
	if got := contractstest.Read[*big.Int](t, c, token, "balanceOf", c.Account(2)); got.Int64() != 990 {
		t.Errorf("balance %s", got)
	}
	if got := c.Revert(t, 1, 0, token, "transfer", c.Account(2), big.NewInt(1)); got != "ERC20InsufficientBalance" {
		t.Errorf("reverts with %q", got)
	}
}

func TestTestTether(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	token := c.Deploy(t, "TestTether", "Test", "TEST", uint8(6))
	for _, amount := range []int64{2, 0, 3} {
		c.Send(t, 1, 0, token, "approve", c.Account(2), big.NewInt(amount))
	}
	if got := c.Revert(t, 1, 0, token, "approve", c.Account(2), big.NewInt(4)); got != "execution reverted" {
		t.Errorf("reverts with %q", got)
	}
}

// An attestation is of one order, output, solver and time. The recording of the Open Intents Framework cannot show it, since its
// oracle attests everything.
func TestSetAttestation(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	settler, oracle := c.Deploy(t, "OutputSettlerSimple"), c.Deploy(t, "OwnedOracle", c.Account(1))
	id, other, solver := [32]byte{1}, [32]byte{2}, contracts.Word(c.Account(2))
	output := contracts.MandateOutput{
		Oracle: settler.Word(), Settler: settler.Word(), ChainId: big.NewInt(chainID), Amount: big.NewInt(5), Recipient: [32]byte{31: 7},
	}
	elsewhere := output
	elsewhere.Oracle = oracle.Word()
	deadline := big.NewInt(c.Now(t).Unix() + 3600)
	c.Send(t, 2, 10, settler, "fillOrderOutputs", id, []contracts.MandateOutput{output, elsewhere}, deadline, solver[:])
	at := uint32(c.Now(t).Unix())
	for _, refused := range []struct {
		want string
		args []any
	}{
		{"InvalidAttestation", []any{other, solver, at, output}},
		{"InvalidAttestation", []any{id, other, at, output}},
		{"InvalidAttestation", []any{id, solver, at + 1, output}},
		{"WrongOutputOracle", []any{id, solver, at, elsewhere}},
	} {
		if got := c.Revert(t, 3, 0, settler, "setAttestation", refused.args...); got != refused.want {
			t.Errorf("reverts with %q, want %q", got, refused.want)
		}
	}
	if got := c.Revert(t, 0, 0, oracle, "setAttestation", id, solver, at, elsewhere); got != "NotOwner" {
		t.Errorf("somebody else than the owner: %q", got)
	}
	c.Send(t, 3, 0, settler, "setAttestation", id, solver, at, output)
	c.Send(t, 1, 0, oracle, "setAttestation", id, solver, at, elsewhere)
	for _, attested := range []struct {
		at     contractstest.Deployed
		output contracts.MandateOutput
	}{{settler, output}, {oracle, elsewhere}} {
		if !proven(t, c, attested.at, attested.output, fillHash(solver, id, at, output)) {
			t.Error("the fill is not attested")
		}
		for _, fill := range [][32]byte{fillHash(solver, other, at, output), fillHash(other, id, at, output), fillHash(solver, id, at+1, output)} {
			if proven(t, c, attested.at, attested.output, fill) {
				t.Errorf("%x is attested", fill)
			}
		}
	}
}

// openSwap opens an order of 10 wei for outputs on the same chain, which expires in an hour.
func openSwap(t *testing.T, c *contractstest.Chain, input, output contractstest.Deployed, outputs ...contracts.MandateOutput) (contracts.StandardOrder, [32]byte) {
	t.Helper()
	expires := uint32(c.Now(t).Unix() + 3600)
	order := contracts.StandardOrder{
		User: c.Account(1), Nonce: big.NewInt(c.Now(t).Unix()), OriginChainId: big.NewInt(chainID), Expires: expires, FillDeadline: expires,
		InputOracle: output.Address, Inputs: [][2]*big.Int{{new(big.Int), big.NewInt(10)}}, Outputs: outputs,
	}
	c.Send(t, 1, 10, input, "open", order)
	return order, contractstest.Read[[32]byte](t, c, input, "orderIdentifier", order)
}

// payment is an output of 5 wei.
func payment(settler contractstest.Deployed, recipient [32]byte) contracts.MandateOutput {
	return contracts.MandateOutput{
		Oracle: settler.Word(), Settler: settler.Word(), ChainId: big.NewInt(chainID), Amount: big.NewInt(5), Recipient: recipient,
	}
}

// A solver is paid at the destination that it names, once, and for fills of all outputs. In the recording the destination is the solver.
func TestFinalise(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	input, output := c.Deploy(t, "InputSettlerEscrow"), c.Deploy(t, "OutputSettlerSimple")
	solver, destination, none := contracts.Word(c.Account(2)), contracts.Word(c.Account(3)), []byte{}
	out := payment(output, [32]byte{31: 7})
	order, id := openSwap(t, c, input, output, out)
	c.Send(t, 2, 5, output, "fill", id, out, big.NewInt(int64(order.FillDeadline)), solver[:])
	fill := contracts.SolveParams{Timestamp: uint32(c.Now(t).Unix()), Solver: solver}
	c.Send(t, 2, 0, output, "setAttestation", id, solver, fill.Timestamp, out)
	two := order
	two.Outputs = append(two.Outputs, out)
	for _, refused := range []struct {
		want    string
		account int
		args    []any
	}{
		{"NoDestination", 2, []any{order, []contracts.SolveParams{fill}, [32]byte{}, none}},
		{"NoDestination", 2, []any{order, []contracts.SolveParams{fill}, [32]byte{0: 1}, none}},
		{"NotImplemented", 2, []any{order, []contracts.SolveParams{fill}, destination, []byte{1}}},
		{"InvalidTimestampLength", 2, []any{order, []contracts.SolveParams{fill, fill}, destination, none}},
		{"InvalidTimestampLength", 2, []any{two, []contracts.SolveParams{fill}, destination, none}},
		{"NotOrderOwner", 3, []any{order, []contracts.SolveParams{fill}, destination, none}},
	} {
		if got := c.Revert(t, refused.account, 0, input, "finalise", refused.args...); got != refused.want {
			t.Errorf("reverts with %q, want %q", got, refused.want)
		}
	}
	before := c.Balance(t, c.Account(3))
	c.Send(t, 2, 0, input, "finalise", order, []contracts.SolveParams{fill}, destination, none)
	if paid := new(big.Int).Sub(c.Balance(t, c.Account(3)), before); paid.Int64() != 10 {
		t.Errorf("the destination has %s wei more", paid)
	}
}

// A destination that calls back finds the order ended: it cannot have the order refunded out of another one's money.
func TestFinalise_CallsBack(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	input, output := c.Deploy(t, "InputSettlerEscrow"), c.Deploy(t, "OutputSettlerSimple")
	solver, out := contracts.Word(c.Account(2)), payment(output, [32]byte{31: 7})
	openSwap(t, c, input, output, out) // which nobody fills
	order, id := openSwap(t, c, input, output, out)
	c.Send(t, 2, 5, output, "fill", id, out, big.NewInt(int64(order.FillDeadline)), solver[:])
	fill := contracts.SolveParams{Timestamp: uint32(c.Now(t).Unix()), Solver: solver}
	c.Send(t, 2, 0, output, "setAttestation", id, solver, fill.Timestamp, out)
	refund, err := input.ABI.Pack("refund", order)
	if err != nil {
		t.Fatal(err)
	}
	destination := contracts.Word(c.DeployCode(t, calls(input.Address, refund)))
	c.Advance(t, 2*time.Hour)
	if reason := c.Revert(t, 3, 0, input, "refund", order); reason != "" {
		t.Fatalf("the refund would not be possible: %s", reason)
	}
	c.Send(t, 2, 0, input, "finalise", order, []contracts.SolveParams{fill}, destination, []byte{})
	if left := c.Balance(t, input.Address); left.Int64() != 10 {
		t.Errorf("%s wei are left of the other order", left)
	}
}

// calls is code that calls a contract and ignores whether it succeeds.
func calls(to common.Address, data []byte) []byte {
	size := binary.BigEndian.AppendUint16(nil, uint16(len(data)))
	return slices.Concat(
		[]byte{0x61}, size, []byte{0x60, 44, 0x60, 0, 0x39}, // PUSH2 size, PUSH1 44, PUSH1 0, CODECOPY: the data follows 44 bytes of code
		[]byte{0x60, 0, 0x60, 0, 0x61}, size, []byte{0x60, 0, 0x60, 0, 0x73}, to[:], // no result, size, the data at 0, no value, PUSH20 to
		[]byte{0x5a, 0xf1, 0x50, 0}, // GAS, CALL, POP, STOP
		data)
}

// A fill returns what it was sent too much, and is of exactly one output.
func TestFill(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	settler, token := c.Deploy(t, "OutputSettlerSimple"), c.Deploy(t, "TestToken", "Test", "TEST", uint8(6), false)
	recipient := c.Deploy(t, "HostileAccount", uint8(1)) // accepts every call without a value
	id, solver, deadline := [32]byte{1}, contracts.Word(c.Account(2)), big.NewInt(c.Now(t).Unix()+3600)

	c.Send(t, 2, 12, settler, "fill", id, payment(settler, [32]byte{31: 7}), deadline, solver[:])
	if kept := c.Balance(t, settler.Address); kept.Sign() != 0 {
		t.Errorf("the settler keeps %s wei", kept)
	}

	called := payment(settler, recipient.Word())
	called.Token, called.CallbackData = token.Word(), []byte{1, 2}
	c.Send(t, 2, 0, token, "mint", c.Account(2), called.Amount)
	c.Send(t, 2, 0, token, "approve", settler.Address, called.Amount)
	c.Send(t, 2, 0, settler, "fill", id, called, deadline, solver[:])
	at := uint32(c.Now(t).Unix())
	c.Send(t, 3, 0, settler, "setAttestation", id, solver, at, called)
	if !proven(t, c, settler, called, fillHash(solver, id, at, called)) {
		t.Error("the fill is not attested")
	}
	other, dirty, longCall, longContext := called, called, called, called
	other.CallbackData = []byte{1, 3}
	dirty.Oracle[0] = 1
	longCall.CallbackData, longContext.Context = make([]byte, 1<<16), make([]byte, 1<<16)
	for _, refused := range []struct {
		want, method string
		args         []any
	}{
		{"InvalidAttestation", "setAttestation", []any{id, solver, at, other}},
		{"CallOutOfRange", "setAttestation", []any{id, solver, at, longCall}},
		{"ContextOutOfRange", "setAttestation", []any{id, solver, at, longContext}},
		{"HasDirtyBits", "fill", []any{id, dirty, deadline, solver[:]}},
		{"NotDivisible", "efficientRequireProven", []any{make([]byte, 127)}},
	} {
		if got := c.Revert(t, 3, 0, settler, refused.method, refused.args...); got != refused.want {
			t.Errorf("%s reverts with %q, want %q", refused.method, got, refused.want)
		}
	}
}

func proven(t *testing.T, c *contractstest.Chain, oracle contractstest.Deployed, output contracts.MandateOutput, fill [32]byte) bool {
	t.Helper()
	return contractstest.Read[bool](t, c, oracle, "isProven", output.ChainId, output.Oracle, output.Settler, fill)
}

// fillHash is the hash of the framework's fill description, of an output without context.
func fillHash(solver, orderID [32]byte, at uint32, output contracts.MandateOutput) [32]byte {
	return crypto.Keccak256Hash(slices.Concat(solver[:], orderID[:], big.NewInt(int64(at)).FillBytes(make([]byte, 4)),
		output.Token[:], common.BigToHash(output.Amount).Bytes(), output.Recipient[:], binary.BigEndian.AppendUint16(nil, uint16(len(output.CallbackData))), output.CallbackData, make([]byte, 2)))
}
