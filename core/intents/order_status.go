package intents

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// Refund builds the transaction that refunds the order of an intent, which must be refundable according to its history. The error
// wraps transfer.ErrNotRefundable if the input settler would not refund the order now: it was claimed or refunded in a way that was not
// seen. A node whose newest block is not after the expiry lags, because the chain has been read further.
func Refund(ctx context.Context, client *rpc.Client, intent *transfer.Intent) (*transfer.Tx, error) {
	settler := common.HexToAddress(intent.Settlement.InputSettler)
	refundable := false
	err := rpc.Ask(ctx, client, intent.Source.Account.Chain, func(ctx context.Context, p *rpc.Provider) error {
		head := rpc.BlockByNumber(rpc.Latest)
		status := rpc.CallContract(rpc.Message{To: settler, Data: transfer.OrderStatusCall(intent.OrderID)}, rpc.Latest)
		if err := p.Do(ctx, head, status); err != nil {
			return err
		}
		if err := errors.Join(head.Err(), status.Err()); err != nil {
			return err
		}
		block, _ := head.Result()
		returned, _ := status.Result()
		recorded, ok := transfer.ParseOrderStatus(returned)
		if block == nil || !ok {
			return fmt.Errorf("%s: the contract %s does not answer as an input settler", p.Host(), settler)
		}
		if !block.Time.After(intent.Settlement.Expires) {
			return fmt.Errorf("%s: lags behind the expiry %s", p.Host(), intent.Settlement.Expires.Format(time.RFC3339))
		}
		refundable = recorded == transfer.OrderDeposited
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !refundable {
		return nil, transfer.ErrNotRefundable
	}
	return intent.Refund()
}

// word decodes a number that a contract returned, nil for another length: the address has no code or another contract.
func word(returned []byte) *big.Int {
	if len(returned) != common.HashLength {
		return nil
	}
	return new(big.Int).SetBytes(returned)
}
