package transfer

import (
	"errors"
	"math/big"
	"slices"
)

// ErrNotRefundable is returned if an intent has no order that can be refunded: see Intent.Refundable.
var ErrNotRefundable = errors.New("the intent has no order that can be refunded")

// Refund builds the transaction that refunds the intent's order on its source chain. Anybody may send it; the input goes to the sender.
func (i *Intent) Refund() (*Tx, error) {
	order, err := i.Order()
	if err != nil {
		return nil, err
	}
	return &Tx{
		Call:  Call{To: i.Settlement.InputSettler, Value: new(big.Int), Data: slices.Concat(settlerRefund[:], order.abi)},
		Chain: i.Source.Account.Chain, From: i.Source.Account.Address,
	}, nil
}
