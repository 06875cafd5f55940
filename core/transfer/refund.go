package transfer

import (
	"errors"
	"math/big"
)

// ErrNotRefundable is returned where an intent has no order that can be refunded: see Intent.Refundable.
var ErrNotRefundable = errors.New("the intent has no order that can be refunded")

// Refund builds the transaction that refunds the intent's order. It is sent on the destination chain, whose settler is asked there to
// have the source chain's pay the sender back; fee is what the message between them costs, in wei: see QuoteRefundCall.
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

// refundData is the data of a call that refunds one order.
func refundData(order *Order) []byte {
	data := append(make([]byte, 0, len(settlerRefund)+3*word+len(order.onchain)), settlerRefund[:]...)
	data = appendUint(data, word) // the offset of the array
	data = appendUint(data, 1)    // its length
	data = appendUint(data, word) // the offset of the tuple
	return append(data, order.onchain...)
}

// QuoteRefundCall is the data of a call that asks the destination's settler for the fee of Refund. The answer is a uint256.
func (i *Intent) QuoteRefundCall() []byte {
	return appendUint(settlerQuoteGasPayment[:], uint64(i.Settlement.OriginDomain))
}
