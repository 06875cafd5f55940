package intents

import (
	"context"

	"intents.internal/core/transfer"
)

// Refund returns the transaction that refunds an intent's order on its source chain. It returns a *screening.NotAllowedError,
// transfer.ErrNotRefundable, rpc.ErrNoProvider for a chain without nodes, or an *rpc.NoAnswerError.
func (s *Service) Refund(ctx context.Context, intent *transfer.Intent) (*transfer.Tx, error) {
	if err := s.refuseHandOut(ctx, intent); err != nil {
		return nil, err
	}
	history, err := s.Store.TransferHistory(ctx, intent)
	if err != nil {
		return nil, err
	}
	if !intent.Refundable(history) {
		return nil, transfer.ErrNotRefundable
	}
	return Refund(ctx, s.Chains, intent)
}
