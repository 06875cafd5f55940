package intents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"intents.internal/core/screening"
	"intents.internal/core/transfer"
)

// Record is an intent with what follows from it and from its history on chain.
type Record struct {
	Intent *transfer.Intent
	// Order is nil for an intent of a scheme that is no longer supported.
	Order *transfer.Order
	// Tx is nil if the transaction must not be sent.
	Tx *transfer.Tx
	// Signature is nil for an intent whose user sends a transaction.
	Signature *transfer.Signature
	// Confirmations is nil while the intent's transaction is in no block, and if the source chain has left the registry.
	Confirmations *transfer.Confirmations
	// Transactions are those of transfer.Intent.Shown.
	Transactions []ShownTransaction
	// FailureReason is nil unless the intent failed.
	FailureReason *transfer.FailureReason
	Refundable    bool
	// Unverifiable is that of transfer.History.
	Unverifiable bool
	// Screened is that of transfer.Moment.
	Screened bool
	// Watched is that of transfer.Moment.
	Watched bool
}

// ShownTransaction is a transaction with its page at the explorer of its chain.
type ShownTransaction struct {
	transfer.Transaction
	// ExplorerURL is empty where the chain has no explorer.
	ExplorerURL string
}

// NewRecord returns the record of an intent without what its history shows. Its transaction is handed out if it may be sent at the moment.
func NewRecord(i *transfer.Intent, at transfer.Moment) (*Record, error) {
	order, err := i.Order()
	if err != nil && !errors.Is(err, transfer.ErrScheme) {
		return nil, fmt.Errorf("write a transfer: %w", err)
	}
	return newRecord(i, order, at)
}

func newRecord(i *transfer.Intent, order *transfer.Order, at transfer.Moment) (*Record, error) {
	tx, err := i.TxOf(order, at)
	if err != nil {
		return nil, err
	}
	signature, err := i.SignatureAt(order, at)
	if err != nil {
		return nil, err
	}
	return &Record{Intent: i, Order: order, Tx: tx, Signature: signature, Screened: at.Screened, Watched: at.Watched}, nil
}

// momentOf is the moment for an intent with its history.
func (s *Service) momentOf(i *transfer.Intent, history transfer.History, now time.Time) transfer.Moment {
	at := i.MomentOf(history, s.Registry.Current(), now)
	at.Screened = s.Screening.CheckIntent(screening.AtHandOut, i) != nil
	return at
}

// recordWithheld records a hit of the screening list where it is the only reason not to hand the intent's transaction out.
func (s *Service) recordWithheld(ctx context.Context, i *transfer.Intent, at transfer.Moment) {
	screened := at.Screened
	at.Screened = false
	if screened && i.Sendable(at) == nil {
		_ = s.refuseHandOut(ctx, i)
	}
}

// refuseHandOut returns a *screening.NotAllowedError for an intent whose transactions are not handed out, and records it.
func (s *Service) refuseHandOut(ctx context.Context, i *transfer.Intent) error {
	return s.Screening.Refused(ctx, screening.AboutIntent(screening.AtHandOut, i), s.Screening.CheckIntent(screening.AtHandOut, i))
}

// Record returns the current record of an intent.
func (s *Service) Record(ctx context.Context, i *transfer.Intent) (*Record, error) {
	history, err := s.Store.TransferHistory(ctx, i)
	if err != nil {
		return nil, err
	}
	at := s.momentOf(i, history, s.Store.Now())
	record, err := NewRecord(i, at)
	if err != nil {
		return nil, err
	}
	s.recordWithheld(ctx, i, at)
	record.Transactions, record.FailureReason = s.shown(i, history), i.FailureReason(history)
	record.Refundable, record.Unverifiable = i.Refundable(history), history.Unverifiable()
	if source, known := s.Registry.Current().Chain(i.Source.Account.Chain); known {
		record.Confirmations = history.Confirmations(source.Confirmations)
	}
	return record, s.addPermits(ctx, recordAt{record, at})
}

func (s *Service) shown(i *transfer.Intent, history transfer.History) []ShownTransaction {
	known, all := s.Registry.Current(), i.Shown(history)
	shown := make([]ShownTransaction, len(all))
	for n, t := range all {
		shown[n].Transaction = t
		if on, ok := known.Chain(t.Chain); ok {
			shown[n].ExplorerURL = on.TransactionURL(t.Hash.Hex())
		}
	}
	return shown
}
