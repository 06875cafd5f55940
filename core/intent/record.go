package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/transfer"
)

// Record is an intent with what follows from it and from its history on chain.
type Record struct {
	Intent *transfer.Intent
	// Order is nil for an intent of a scheme that is no longer supported.
	Order *transfer.Order
	// Tx is nil if the transaction must not be sent.
	Tx *transfer.Tx
	// Confirmations is nil while the intent's transaction is in no block, and if the source chain has left the registry.
	Confirmations *transfer.Confirmations
	// Transactions are those of transfer.Intent.Shown.
	Transactions []transfer.Transaction
	Refundable   bool
	// Unverifiable is that of transfer.History.
	Unverifiable bool
}

// NewRecord returns the record of an intent without a history. blockTime is that of the source chain.
func NewRecord(i *transfer.Intent, now time.Time, blockTime time.Duration) (*Record, error) {
	order, err := i.Order()
	if err != nil && !errors.Is(err, transfer.ErrScheme) {
		return nil, fmt.Errorf("write a transfer: %w", err)
	}
	return newRecord(i, order, now, blockTime)
}

func newRecord(i *transfer.Intent, order *transfer.Order, now time.Time, blockTime time.Duration) (*Record, error) {
	tx, err := i.TxOf(order, now, blockTime)
	if err != nil {
		return nil, err
	}
	return &Record{Intent: i, Order: order, Tx: tx}, nil
}

// blockTime is the usual time between two blocks of an intent's source chain, the default's if it has left the registry.
func (s *Service) blockTime(i *transfer.Intent) time.Duration {
	if source, known := s.Registry.Current().Chain(i.Source.Account.Chain); known {
		return source.BlockTime
	}
	return chain.DefaultBlockTime
}

// Record returns the current record of an intent.
func (s *Service) Record(ctx context.Context, i *transfer.Intent) (*Record, error) {
	history, err := s.Transactions.TransferHistory(ctx, i)
	if err != nil {
		return nil, err
	}
	record, err := NewRecord(i, s.Store.Now(), s.blockTime(i))
	if err != nil {
		return nil, err
	}
	record.Transactions = i.Shown(history)
	record.Refundable, record.Unverifiable = i.Refundable(history), history.Unverifiable()
	if source, known := s.Registry.Current().Chain(i.Source.Account.Chain); known {
		record.Confirmations = history.Confirmations(source.Confirmations)
	}
	return record, nil
}
