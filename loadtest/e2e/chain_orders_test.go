package e2e_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
)

// chainOrder is the order of a record.
type chainOrder struct {
	User                  common.Address
	Nonce                 string
	OriginChainID         uint64
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                []struct {
		Token  common.Address
		Amount string
	}
	Outputs []struct {
		Oracle, Settler, Token, Recipient common.Hash
		ChainID                           uint64
		Amount                            string
		CallbackData, Context             hexutil.Bytes
	}
}

// standard is the order as its contracts take it.
func (o chainOrder) standard(t *testing.T) anvil.StandardOrder {
	t.Helper()
	number := func(digits string) *big.Int {
		t.Helper()
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok {
			t.Fatalf("%q is no number", digits)
		}
		return n
	}
	order := anvil.StandardOrder{
		User: o.User, Nonce: number(o.Nonce), OriginChainId: new(big.Int).SetUint64(o.OriginChainID),
		Expires: o.Expires, FillDeadline: o.FillDeadline, InputOracle: o.InputOracle,
	}
	for _, input := range o.Inputs {
		order.Inputs = append(order.Inputs, [2]*big.Int{input.Token.Big(), number(input.Amount)})
	}
	for _, output := range o.Outputs {
		order.Outputs = append(order.Outputs, anvil.MandateOutput{
			Oracle: output.Oracle, Settler: output.Settler, ChainId: new(big.Int).SetUint64(output.ChainID), Token: output.Token,
			Amount: number(output.Amount), Recipient: output.Recipient, CallbackData: output.CallbackData, Context: output.Context,
		})
	}
	return order
}

// output is the only output of a record's order.
func (r chainRecord) output(t *testing.T) anvil.MandateOutput {
	t.Helper()
	outputs := r.Order.standard(t).Outputs
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
func (c *evmChain) claim(t *testing.T, r chainRecord, solver common.Address, fill []any) {
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
		r.Order.standard(t), []solveParams{{timestamp, solverID(solver)}}, solverID(solver), []byte{}))
}

// refund has the input settler give an expired order's input back.
func (c *evmChain) refund(t *testing.T, anybody common.Address, r chainRecord) anvil.Receipt {
	t.Helper()
	return c.Execute(t, c.input.Transaction(t, anybody, "refund", r.Order.standard(t)))
}

// The statuses of orders at the input settler.
const (
	orderDeposited = 1
	orderClaimed   = 2
	orderRefunded  = 3
)

// expectStatus expects the status of an order at the chain's input settler.
func (c *evmChain) expectStatus(t *testing.T, r chainRecord, want uint8) {
	t.Helper()
	if got := anvil.Read[uint8](t, c.Node, c.input, "orderStatus", common.HexToHash(r.OrderID)); got != want {
		t.Errorf("the input settler says that the order %s has status %d, want %d", r.OrderID, got, want)
	}
}
