package transfer

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"intents.internal/core/intent/token"
	"intents.internal/pkg/caip"
)

// Tx is an unsigned transaction that executes an intent once From has signed it.
type Tx struct {
	Call
	Chain caip.ChainID
	From  string
	// Allowances must be granted before the transaction is sent.
	Allowances []Allowance
}

// Calls returns the calls that grant the allowances and then the transaction's own call, in the order of execution.
func (t *Tx) Calls() []Call {
	calls := make([]Call, 0, len(t.Allowances)+1)
	for _, a := range t.Allowances {
		calls = append(calls, a.Approve)
	}
	return append(calls, t.Call)
}

// Call is the target, value and data of a transaction. Addresses are in EIP-55 spelling; Value is in wei.
type Call struct {
	To    string
	Value *big.Int
	Data  []byte
}

// Allowance is an ERC-20 allowance a transaction needs and the call that grants it.
type Allowance struct {
	Token   caip.AccountID
	Owner   string
	Spender string
	Amount  *big.Int
	Approve Call
}

// Tx builds the transaction, nil if it must not be sent: unless the intent is created or submitted and its deadline is ahead, the
// settler would still open the order and lock funds for an order that cannot be filled. A transfer is a plain transfer of its
// asset; a swap or bridge opens the intent's order at the settler of the source chain, which only the source account can do under
// this order id.
func (i *Intent) Tx(now time.Time) (*Tx, error) {
	if i.Type == Transfer || !i.sendable(now) {
		return i.TxOf(nil, now)
	}
	order, err := i.Order()
	if err != nil {
		return nil, err
	}
	return i.TxOf(&order, now)
}

// TxOf is Tx with the intent's order already encoded. A transfer's transaction needs no order.
func (i *Intent) TxOf(order *Order, now time.Time) (*Tx, error) {
	if !i.sendable(now) {
		return nil, nil
	}
	call, allowances, err := i.call(order)
	if err != nil {
		return nil, fmt.Errorf("build the transaction of transfer %s: %w", i.ID, err)
	}
	return &Tx{Call: call, Chain: i.Source.Account.Chain, From: i.Source.Account.Address, Allowances: allowances}, nil
}

func (i *Intent) sendable(now time.Time) bool {
	return (i.Status == Created || i.Status == Submitted) && now.Before(i.Deadline)
}

func (i *Intent) call(order *Order) (Call, []Allowance, error) {
	native := token.Native(i.Source.Token)
	switch {
	case i.Type != Transfer:
		return i.openCall(order, native)
	case native:
		return Call{To: i.Destination.Account.Address, Value: i.Source.Amount}, nil, nil
	default:
		call, err := tokenCall(erc20Transfer, i.Source.Token, i.Destination.Account.Address, i.Source.Amount)
		return call, nil, err
	}
}

// openCall returns the call that opens the order. A native input is the call's value; the settler pulls an ERC-20 input, which
// needs the allowance.
func (i *Intent) openCall(order *Order, native bool) (Call, []Allowance, error) {
	open := Call{To: i.Settlement.OriginSettler, Value: new(big.Int), Data: openData(order)}
	if native {
		open.Value = i.Source.Amount
		return open, nil, nil
	}
	approve, err := tokenCall(erc20Approve, i.Source.Token, i.Settlement.OriginSettler, i.Source.Amount)
	if err != nil {
		return Call{}, nil, err
	}
	return open, []Allowance{{
		Token: i.Source.Token, Owner: i.Source.Account.Address, Spender: i.Settlement.OriginSettler,
		Amount: i.Source.Amount, Approve: approve,
	}}, nil
}

// Functions of the contracts that are called.
var (
	erc20Transfer          = selector("transfer(address,uint256)")
	erc20Approve           = selector("approve(address,uint256)")
	settlerOpen            = selector("open((uint32,bytes32,bytes))")
	settlerRefund          = selector("refund((uint32,bytes32,bytes)[])")
	settlerQuoteGasPayment = selector("quoteGasPayment(uint32)")
	settlerOrderStatus     = selector("orderStatus(bytes32)")
)

// tokenCall calls a function of an ERC-20 token that takes an account and an amount.
func tokenCall(function [4]byte, contract caip.AccountID, account string, amount *big.Int) (Call, error) {
	data, err := appendAddresses(append(make([]byte, 0, len(function)+2*word), function[:]...), account)
	if err != nil {
		return Call{}, err
	}
	data, err = appendBig(data, amount)
	return Call{To: contract.Address, Value: new(big.Int), Data: data}, err
}

// openData returns the calldata that opens an order.
func openData(order *Order) []byte {
	data := append(make([]byte, 0, len(settlerOpen)+word+len(order.onchain)), settlerOpen[:]...)
	return append(appendUint(data, word), order.onchain...) // the first word is the offset of the tuple
}

// OrderStatusCall returns the calldata that asks a settler for the status of an order. The result is text, zero-padded to 32
// bytes: none, OPENED, FILLED, SETTLED or REFUNDED.
func OrderStatusCall(orderID [32]byte) []byte {
	return slices.Concat(settlerOrderStatus[:], orderID[:])
}
