package e2e_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
	intents "intents.internal/pkg/client"
)

// orderOf is the order of an intent as its contracts take it, read from the transaction that opens it.
func orderOf(t *testing.T, r *intents.Transfer) anvil.StandardOrder {
	t.Helper()
	values, err := anvil.Compiled(t, "InputSettlerEscrow").ABI.Methods["open"].Inputs.Unpack(common.FromHex(r.Tx.Data)[4:])
	if err != nil {
		t.Fatalf("%v: %+v", err, r.Tx)
	}
	return *abi.ConvertType(values[0], new(anvil.StandardOrder)).(*anvil.StandardOrder) //nolint:forcetypeassert // that is what it returns
}

// outputOf is the only output of an intent's order.
func outputOf(t *testing.T, r *intents.Transfer) anvil.MandateOutput {
	t.Helper()
	outputs := orderOf(t, r).Outputs
	if len(outputs) != 1 {
		t.Fatalf("%d outputs", len(outputs))
	}
	return outputs[0]
}

// solverID is an account as solvers name themselves.
func solverID(account common.Address) [32]byte { return common.BytesToHash(account[:]) }

// fill has the chain's output settler pay an output for an order. A token of the output must be approved.
func (c *evmChain) fill(t *testing.T, solver common.Address, orderID string, output anvil.MandateOutput) anvil.Receipt {
	t.Helper()
	id := solverID(solver)
	tx := c.output.Transaction(t, solver, "fill", common.HexToHash(orderID), output, big.NewInt(1<<40), id[:])
	if output.Token == [32]byte{} {
		tx.Value = (*hexutil.Big)(output.Amount)
	}
	receipt := c.Execute(t, tx)
	c.output.Event(t, receipt, "OutputFilled")
	return receipt
}

// claim has the solver of an order take its input, which the input settler grants once the oracle knows of the fill.
func (c *evmChain) claim(t *testing.T, r *intents.Transfer, solver common.Address, fill []any) {
	t.Helper()
	type solveParams struct {
		Timestamp uint32
		Solver    [32]byte
	}
	timestamp, ok := fill[1].(uint32)
	if !ok {
		t.Fatalf("the fill is %v", fill)
	}
	c.Execute(t, c.input.Transaction(t, solver, "finalise",
		orderOf(t, r), []solveParams{{timestamp, solverID(solver)}}, solverID(solver), []byte{}))
}

// refund has the input settler give an expired order's input back.
func (c *evmChain) refund(t *testing.T, r *intents.Transfer) {
	t.Helper()
	c.Execute(t, c.input.Transaction(t, c.owner(), "refund", orderOf(t, r)))
}

// The statuses of orders at the input settler.
const (
	orderDeposited = 1
	orderClaimed   = 2
	orderRefunded  = 3
)

// expectStatus expects the status of an order at the chain's input settler.
func (c *evmChain) expectStatus(t *testing.T, r *intents.Transfer, want uint8) {
	t.Helper()
	if got := anvil.Read[uint8](t, c.Node, c.input, "orderStatus", common.HexToHash(r.OrderID)); got != want {
		t.Errorf("the input settler says that the order %s has status %d, want %d", r.OrderID, got, want)
	}
}
