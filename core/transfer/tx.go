package transfer

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/token"
	"intents.internal/pkg/caip"
)

// Tx is an unsigned transaction that carries an intent out once From has signed it.
type Tx struct {
	Call
	Chain caip.ChainID
	From  string
	// Allowances must be in place before the transaction is sent.
	Allowances []Allowance
}

// Calls are the calls that grant the allowances and then the transaction's own, in the order in which they must be executed.
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

// Tx builds the transaction, nil where it must not be sent: unless the intent is created or submitted and its deadline is
// ahead, the settler would open the order all the same and hold money that nobody can fill for. A transfer is the plain
// transaction of its asset; a swap or bridge opens the intent's order at the settler of the source chain, which only the
// source account itself can do under this order id.
func (i *Intent) Tx(now time.Time) (*Tx, error) {
	if (i.Status != Created && i.Status != Submitted) || !now.Before(i.Deadline) {
		return nil, nil
	}
	call, allowances, err := i.call()
	if err != nil {
		return nil, fmt.Errorf("build the transaction of transfer %s: %w", i.ID, err)
	}
	return &Tx{Call: call, Chain: i.Source.Account.Chain, From: i.Source.Account.Address, Allowances: allowances}, nil
}

func (i *Intent) call() (Call, []Allowance, error) {
	native := token.Native(i.Source.Token)
	switch {
	case i.Type != Transfer:
		return i.openCall(native)
	case native:
		return Call{To: i.Destination.Account.Address, Value: i.Source.Amount}, nil, nil
	default:
		call, err := tokenCall(erc20Transfer, i.Source.Token, i.Destination.Account.Address, i.Source.Amount)
		return call, nil, err
	}
}

// openCall opens the order. A native input travels as the call's value; an ERC-20 one is drawn by the settler, which
// needs the allowance.
func (i *Intent) openCall(native bool) (Call, []Allowance, error) {
	order, err := i.onchainOrder()
	if err != nil {
		return Call{}, nil, err
	}
	data, err := settlerOpen.pack(order)
	if err != nil {
		return Call{}, nil, err
	}
	open := Call{To: i.Settlement.OriginSettler, Value: new(big.Int), Data: data}
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

func tokenCall(m method, contract caip.AccountID, account string, amount *big.Int) (Call, error) {
	data, err := m.pack(common.HexToAddress(account), amount)
	return Call{To: contract.Address, Value: new(big.Int), Data: data}, err
}

// onchainOrder is ERC-7683's OnchainCrossChainOrder.
type onchainOrder struct {
	FillDeadline  uint32
	OrderDataType [32]byte
	OrderData     []byte
}

// onchainOrder is the intent's order as its settlers take it.
func (i *Intent) onchainOrder() (onchainOrder, error) {
	order, err := i.Order()
	if err != nil {
		return onchainOrder{}, err
	}
	return onchainOrder{FillDeadline: order.FillDeadline, OrderDataType: OrderDataType, OrderData: order.Encoded}, nil
}

// method is a contract function: its selector and the ABI of its arguments.
type method struct {
	selector []byte
	inputs   abi.Arguments
}

var (
	erc20Transfer = newMethod("transfer(address,uint256)", plain("address"), plain("uint256"))
	erc20Approve  = newMethod("approve(address,uint256)", plain("address"), plain("uint256"))
	settlerOpen   = newMethod("open((uint32,bytes32,bytes))", abi.ArgumentMarshaling{
		Type:       "tuple",
		Components: components("OnchainCrossChainOrder(uint32 fillDeadline,bytes32 orderDataType,bytes orderData)"),
	})
)

func newMethod(signature string, inputs ...abi.ArgumentMarshaling) method {
	return method{selector: crypto.Keccak256([]byte(signature))[:4], inputs: arguments(inputs...)}
}

func plain(kind string) abi.ArgumentMarshaling { return abi.ArgumentMarshaling{Type: kind} }

func (m method) pack(args ...any) ([]byte, error) {
	packed, err := m.inputs.Pack(args...)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(m.selector), packed...), nil
}

var settlerOrderStatus = newMethod("orderStatus(bytes32)", plain("bytes32"))

// OrderStatusCall is the data of a call that asks a settler for the status of an order. The answer is text, padded with zeros to 32
// bytes: none, OPENED, FILLED, SETTLED or REFUNDED.
func OrderStatusCall(orderID [32]byte) []byte {
	return slices.Concat(settlerOrderStatus.selector, orderID[:])
}
