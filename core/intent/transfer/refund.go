package transfer

import (
	"errors"
	"math/big"
)

// ErrNotRefundable is returned if an intent has no order that can be refunded: see Intent.Refundable.
var ErrNotRefundable = errors.New("the intent has no order that can be refunded")

// Refund builds the transaction that refunds the intent's order. It is sent on the destination chain, whose settler messages the
// source chain's settler to pay the sender back. The fee is the price of this message in wei: see QuoteRefundCall.
func (i *Intent) Refund(fee *big.Int) (*Tx, error) {
	order, err := i.Order()
	if err != nil {
		return nil, err
	}
	return &Tx{
		Call:  Call{To: i.Settlement.DestinationSettler, Value: fee, Data: refundData(&order)},
		Chain: i.Destination.Account.Chain, From: i.Source.Account.Address,
	}, nil
}

// refundData returns the calldata that refunds one order.
func refundData(order *Order) []byte {
	data := append(make([]byte, 0, len(settlerRefund)+3*word+len(order.onchain)), settlerRefund[:]...)
	data = appendUint(data, word) // the offset of the array
	data = appendUint(data, 1)    // its length
	data = appendUint(data, word) // the offset of the tuple
	return append(data, order.onchain...)
}

// QuoteRefundCall returns the calldata that asks the destination's settler for the fee of Refund, which is a uint256.
func (i *Intent) QuoteRefundCall() []byte {
	return appendUint(settlerQuoteGasPayment[:], uint64(i.Settlement.OriginDomain))
}
