package onchain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
)

// Refund builds the transaction that refunds the order of an intent, which must be refundable according to its history. The error
// wraps transfer.ErrNotRefundable if the destination's settler would not refund the order now.
func Refund(ctx context.Context, client *rpc.Client, intent *transfer.Intent) (*transfer.Tx, error) {
	fee, err := refundFee(ctx, client, intent)
	if err != nil {
		return nil, err
	}
	return intent.Refund(fee)
}

// refundFee asks the destination's settler for the price of a refund, and whether it knows the order: it may have been filled in a
// way that was not seen. A node whose newest block is before the deadline lags, because the chain has been read further.
func refundFee(ctx context.Context, client *rpc.Client, intent *transfer.Intent) (fee *big.Int, err error) {
	settler := common.HexToAddress(intent.Settlement.DestinationSettler)
	refundable := false
	err = askNodes(ctx, client, intent.Destination.Account.Chain, func(ctx context.Context, p *rpc.Provider) error {
		head := rpc.BlockByNumber(rpc.Latest)
		status := rpc.CallContract(rpc.Message{To: settler, Data: transfer.OrderStatusCall(intent.OrderID)}, rpc.Latest)
		quote := rpc.CallContract(rpc.Message{To: settler, Data: intent.QuoteRefundCall()}, rpc.Latest)
		if err := p.Do(ctx, head, status, quote); err != nil {
			return err
		}
		if err := errors.Join(head.Err(), status.Err(), quote.Err()); err != nil {
			return err
		}
		block, _ := head.Result()
		known, _ := status.Result()
		quoted, _ := quote.Result()
		number, ok := word(known)
		var quoteOK bool
		if fee, quoteOK = word(quoted); block == nil || !ok || !quoteOK {
			return fmt.Errorf("%s: the contract %s does not answer as a settler", p.Host(), settler)
		}
		if !block.Time.After(intent.Deadline) {
			return fmt.Errorf("%s: lags behind the deadline %s", p.Host(), intent.Deadline.Format(time.RFC3339))
		}
		refundable = number.Sign() == 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !refundable {
		return nil, transfer.ErrNotRefundable
	}
	return fee, nil
}
