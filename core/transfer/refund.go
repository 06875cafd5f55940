package transfer

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// ErrNotRefundable is returned where an intent has no order that can be refunded: see Intent.Refundable.
var ErrNotRefundable = errors.New("the intent has no order that can be refunded")

var (
	settlerRefund = newMethod("refund((uint32,bytes32,bytes)[])", abi.ArgumentMarshaling{
		Type:       "tuple[]",
		Components: components("OnchainCrossChainOrder(uint32 fillDeadline,bytes32 orderDataType,bytes orderData)"),
	})
	settlerQuoteGasPayment = newMethod("quoteGasPayment(uint32)", plain("uint32"))
)

// Refund builds the transaction that refunds the intent's order. It is sent on the destination chain, whose settler is asked there to
// have the source chain's pay the sender back; fee is what the message between them costs, in wei: see QuoteRefundCall.
func (i *Intent) Refund(fee *big.Int) (*Tx, error) {
	order, err := i.onchainOrder()
	if err != nil {
		return nil, err
	}
	data, err := settlerRefund.pack([]onchainOrder{order})
	if err != nil {
		return nil, fmt.Errorf("build the refund of transfer %s: %w", i.ID, err)
	}
	return &Tx{
		Call:  Call{To: i.Settlement.DestinationSettler, Value: fee, Data: data},
		Chain: i.Destination.Account.Chain, From: i.Source.Account.Address,
	}, nil
}

// QuoteRefundCall is the data of a call that asks the destination's settler for the fee of Refund. The answer is a uint256.
func (i *Intent) QuoteRefundCall() []byte {
	domain := new(big.Int).SetUint64(uint64(i.Settlement.OriginDomain))
	return slices.Concat(settlerQuoteGasPayment.selector, common.BigToHash(domain).Bytes())
}
