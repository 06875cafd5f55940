package transfer

import (
	"fmt"
	"math/big"
	"slices"

	"intents.internal/core/registry"
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

// StepName says in a sentence what a step does.
type StepName string

// The steps of a transaction.
const (
	StepReset       StepName = "reset of the allowance"
	StepApproval    StepName = "approval"
	StepTransaction StepName = "transaction"
)

// Step is one of the calls by which a sender carries out a transaction.
type Step struct {
	Name StepName
	Call
}

// StepsOf chooses the steps of a transaction of which the settler has this allowance; a nil allowance is not known.
type StepsOf func(tx *Tx, allowance *big.Int) []Step

// AllSteps are the calls of Calls, whatever allowance stands.
func AllSteps(tx *Tx, _ *big.Int) []Step {
	calls := tx.Calls()
	steps := make([]Step, len(calls))
	for n, call := range calls {
		steps[n] = Step{StepApproval, call}
	}
	steps[len(steps)-1].Name = StepTransaction
	return steps
}

// NeededSteps leave out the approval of an allowance that is enough, and have its reset before it where one that is neither enough nor 0 stands.
func NeededSteps(tx *Tx, allowance *big.Int) []Step {
	steps := AllSteps(tx, allowance)
	switch {
	case len(tx.Allowances) == 0 || allowance == nil || allowance.Sign() == 0:
		return steps
	case tx.Allows(allowance):
		return steps[len(tx.Allowances):]
	default:
		return slices.Insert(steps, 0, Step{StepReset, tx.Allowances[0].Reset})
	}
}

// Allows reports whether an allowance is enough for the transaction.
func (t *Tx) Allows(allowance *big.Int) bool {
	return len(t.Allowances) == 0 || allowance != nil && allowance.Cmp(t.Allowances[0].Amount) >= 0
}

// Call is the target, value and data of a transaction. Addresses are in EIP-55 spelling; Value is in wei.
type Call struct {
	To    string
	Value *big.Int
	Data  []byte
}

// Allowance is an ERC-20 allowance a transaction needs and the calls that grant it.
type Allowance struct {
	Token   caip.AccountID
	Owner   string
	Spender string
	Amount  *big.Int
	Approve Call
	// Reset sets the allowance to 0. It is sent before Approve where an allowance that is neither 0 nor enough stands: some tokens, such as
	// USDT on Ethereum, refuse to change one.
	Reset Call
}

// Tx builds the transaction, nil if it must not be sent: see Sendable. A transfer is a plain transfer of its asset; a swap or bridge opens the
// intent's order at the input settler of the source chain.
func (i *Intent) Tx(m Moment) (*Tx, error) {
	if !i.HasOrder() || i.Signing.Scheme != "" || i.Sendable(m) != nil {
		return i.TxOf(nil, m)
	}
	order, err := i.Order()
	if err != nil {
		return nil, err
	}
	return i.TxOf(order, m)
}

// TxOf is Tx with the intent's order already encoded. A transfer's transaction needs no order. An intent that is signed has no transaction of its
// user's: one that is executed both ways pays twice.
func (i *Intent) TxOf(order *Order, m Moment) (*Tx, error) {
	if i.Signing.Scheme != "" || i.Sendable(m) != nil {
		return nil, nil //nolint:nilerr // there is no transaction, and Sendable says why
	}
	call, allowances, err := i.call(order)
	if err != nil {
		return nil, fmt.Errorf("build the transaction of transfer %s: %w", i.ID, err)
	}
	return &Tx{Call: call, Chain: i.Source.Account.Chain, From: i.Source.Account.Address, Allowances: allowances}, nil
}

func (i *Intent) call(order *Order) (Call, []Allowance, error) {
	native := registry.Native(i.Source.Token)
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
	spender := i.Settlement.InputSettler
	open := Call{To: spender, Value: new(big.Int), Data: order.open}
	if native {
		open.Value = i.Source.Amount
		return open, nil, nil
	}
	allowance, err := i.allowance(spender)
	if err != nil {
		return Call{}, nil, err
	}
	return open, []Allowance{allowance}, nil
}

// allowance is what a spender needs to take the intent's input.
func (i *Intent) allowance(spender string) (Allowance, error) {
	approve, err := tokenCall(erc20Approve, i.Source.Token, spender, i.Source.Amount)
	if err != nil {
		return Allowance{}, err
	}
	reset, err := tokenCall(erc20Approve, i.Source.Token, spender, new(big.Int))
	return Allowance{
		Token: i.Source.Token, Owner: i.Source.Account.Address, Spender: spender, Amount: i.Source.Amount, Approve: approve, Reset: reset,
	}, err
}

// Functions of the contracts that are called.
var (
	erc20Transfer     = selector("transfer(address,uint256)")
	erc20Approve      = selector("approve(address,uint256)")
	settlerOpen       = selector("open(" + standardOrder + ")")
	settlerRefund     = selector("refund(" + standardOrder + ")")
	settlerStatus     = selector("orderStatus(bytes32)")
	settlerFillRecord = selector("getFillRecord(bytes32," + mandateOutput + ")")
)

// The ABI types of an order and its output.
const (
	mandateOutput = "(bytes32,bytes32,uint256,bytes32,uint256,bytes32,bytes,bytes)"
	standardOrder = "(address,uint256,uint256,uint32,uint32,address,uint256[2][]," + mandateOutput + "[])"
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

// OrderStatus is what an input settler records of an order.
type OrderStatus uint8

// The statuses, by their numbers at the settler.
const (
	OrderNone OrderStatus = iota
	OrderDeposited
	OrderClaimed
	OrderRefunded
)

// OrderStatusCall returns the calldata that asks an input settler for the status of an order.
func OrderStatusCall(orderID [32]byte) []byte { return slices.Concat(settlerStatus[:], orderID[:]) }

// ParseOrderStatus decodes the result of OrderStatusCall; ok is false if it is no status: the contract is no input settler.
func ParseOrderStatus(returned []byte) (status OrderStatus, ok bool) {
	if len(returned) != word || new(big.Int).SetBytes(returned).Cmp(big.NewInt(int64(OrderRefunded))) > 0 {
		return OrderNone, false
	}
	return OrderStatus(returned[word-1]), true
}

// FillRecordCall returns the calldata that asks the output settler for its record of the intent's fill, a bytes32 that is zero while
// nobody has filled exactly the order's output.
func (i *Intent) FillRecordCall() ([]byte, error) {
	order, err := i.Order()
	if err != nil {
		return nil, err
	}
	call := append(settlerFillRecord[:], i.OrderID[:]...)
	return append(appendUint(call, 2*word), order.output()...), nil
}
