package api

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// getRefund answers GET /v2/transfers/{id}/refund with the transaction that refunds an order.
func (s *Server) getRefund(w http.ResponseWriter, r *http.Request) error {
	_, intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	history, err := s.Store.TransferHistory(r.Context(), intent)
	if err != nil {
		return err
	}
	if !intent.Refundable(history, s.Store.Now()) {
		return transfer.ErrNotRefundable
	}
	fee, err := s.refundFee(r.Context(), intent)
	if err != nil {
		return err
	}
	tx, err := intent.Refund(fee)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		Tx *txJSON `json:"tx"`
	}{newTxJSON(tx)})
}

// refundFee asks the destination's settler what a refund costs, and whether it would refund the order now: it may have filled the order
// since the chain was last read, and compares the deadline with its own chain's clock.
func (s *Server) refundFee(ctx context.Context, intent *transfer.Intent) (fee *big.Int, err error) {
	settler := common.HexToAddress(intent.Settlement.DestinationSettler)
	refundable := false
	err = s.askNodes(ctx, intent.Destination.Account.Chain, func(ctx context.Context, p *rpc.Provider) error {
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
		refundable = number.Sign() == 0 && block.Time.After(intent.Deadline)
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
