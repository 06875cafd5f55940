package rpctest

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/transfer"
)

// The ABI types of a StandardOrder and its output.
const (
	mandateOutput = "(bytes32,bytes32,uint256,bytes32,uint256,bytes32,bytes,bytes)"
	standardOrder = "(address,uint256,uint256,uint32,uint32,address,uint256[2][]," + mandateOutput + "[])"
)

// Solver is who fills and claims.
var Solver = common.HexToAddress("0xf111")

// Opened is the event by which the input settler opens an intent's order.
func Opened(i *transfer.Intent) Log {
	refund, err := i.Refund() // whose argument is the order
	if err != nil {
		panic(fmt.Errorf("encode an order: %w", err))
	}
	return settlerLog(i.Settlement.InputSettler, "Open(bytes32,"+standardOrder+")", i, refund.Data[len(Selector{}):])
}

// OpenedToFinalise is the event by which openForAndFinalise opens an intent's order, whose Finalised stands in the same transaction.
func OpenedToFinalise(i *transfer.Intent) Log {
	return settlerLog(i.Settlement.InputSettler, "Open(bytes32)", i, nil)
}

// Deposited is the event by which the source token tells that the input settler has the intent's input.
func Deposited(i *transfer.Intent) Log { return Paid(i, i.Settlement.InputSettler) }

// Paid is the event by which the source token tells that an account has the source amount.
func Paid(i *transfer.Intent, to string) Log {
	return Log{
		Address: common.HexToAddress(i.Source.Token.Address), Topics: []common.Hash{
			crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")), common.HexToHash(i.Source.Account.Address), common.HexToHash(to),
		},
		Data: common.BigToHash(i.Source.Amount).Bytes(),
	}
}

// Filled is the event by which the output settler pays exactly the intent's output.
func Filled(i *transfer.Intent) Log {
	const head = 4 // the words before the output
	output := fillRecordCall(i)[len(Selector{})+2*len(common.Hash{}):]
	data := slices.Concat(common.LeftPadBytes(Solver[:], 32), Word(1), Word(head*32), common.BigToHash(i.Destination.Amount).Bytes(), output)
	return settlerLog(i.Settlement.OutputSettler, "OutputFilled(bytes32,bytes32,uint32,"+mandateOutput+",uint256)", i, data)
}

// Finalised is the event by which the input settler pays the solver.
func Finalised(i *transfer.Intent) Log {
	return settlerLog(i.Settlement.InputSettler, "Finalised(bytes32,bytes32,bytes32)", i, slices.Concat(common.LeftPadBytes(Solver[:], 32), common.LeftPadBytes(Solver[:], 32)))
}

// Refunded is the event by which the input settler pays the user back.
func Refunded(i *transfer.Intent) Log {
	return settlerLog(i.Settlement.InputSettler, "Refunded(bytes32)", i, nil)
}

func settlerLog(settler, signature string, i *transfer.Intent, data []byte) Log {
	return Log{Address: common.HexToAddress(settler), Topics: []common.Hash{crypto.Keccak256Hash([]byte(signature)), i.OrderID}, Data: data}
}

func fillRecordCall(i *transfer.Intent) []byte {
	data, err := i.FillRecordCall()
	if err != nil {
		panic(fmt.Errorf("encode an output: %w", err))
	}
	return data
}

// SetSettler makes an address an input and output settler that knows no order.
func (c *Chain) SetSettler(address common.Address) {
	c.SetCode(address, []byte{1})
	none := func(Call) ([]byte, error) { return Word(0), nil }
	c.SetFunction(address, OrderStatus, none)
	c.SetFunction(address, FillRecord, none)
}

// SetOrderStatus is what the intent's input settler records of its order.
func (c *Chain) SetOrderStatus(i *transfer.Intent, status transfer.OrderStatus) {
	c.SetAnswer(common.HexToAddress(i.Settlement.InputSettler), transfer.OrderStatusCall(i.OrderID), Word(uint64(status)))
}

// SetFilled has the intent's output settler record that it paid exactly the output, or nothing.
func (c *Chain) SetFilled(i *transfer.Intent, filled bool) {
	record := new(big.Int)
	if filled {
		record.SetBytes(crypto.Keccak256(i.OrderID[:]))
	}
	c.SetAnswer(common.HexToAddress(i.Settlement.OutputSettler), fillRecordCall(i), common.BigToHash(record).Bytes())
}
