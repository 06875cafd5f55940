package intent

import (
	"context"
	"errors"
	"time"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/intents"
	"intents.internal/pkg/wire"
)

// Draft returns the intent that Create would make of a request, without storing it. It returns an *EnvironmentError or a
// *transfer.Rejection.
func (s *Service) Draft(by transfer.Caller, request wire.TransferRequest) (*transfer.Intent, error) {
	draft, _, err := s.draft(by, request, s.Store.Now())
	return draft, err
}

func (s *Service) draft(by transfer.Caller, request wire.TransferRequest, now time.Time) (*transfer.Intent, *transfer.Order, error) {
	known := s.Registry.Current()
	if err := CheckEnvironment(request, known, by.Environment); err != nil {
		return nil, nil, err
	}
	return transfer.NewWithOrder(transfer.NewID(now), by, request, known)
}

// Create stores the intent of a request with its first event, both durable when it returns. It returns the errors of Draft and of
// intents.Store.InsertTransfer.
//
// A request with an idempotency key that the account has used before in the key's environment stores nothing: replayed is set and
// the record is that of the first response, but without the transaction if the intent has changed since, because it must not be
// sent any more. This holds even if the request would be rejected now, because its deadline is too near or a token has left the
// registry.
func (s *Service) Create(ctx context.Context, by transfer.Caller, request wire.TransferRequest, key string) (record *Record, replayed bool, err error) {
	now := s.Store.Now()
	idempotency := intents.Idempotency{Key: key, Environment: by.Environment, Request: request}
	if key != "" {
		idempotency.Source, _ = s.Registry.Current().Chain(request.Source.Account.Chain)
	}
	draft, order, err := s.draft(by, request, now)
	var intent *transfer.Intent
	if err == nil {
		intent, err = s.Store.InsertTransfer(ctx, draft, idempotency)
	} else if _, rejected := errors.AsType[*transfer.Rejection](err); rejected && key != "" {
		intent, err = s.firstOr(ctx, by, idempotency, err)
	}
	if err != nil {
		return nil, false, err
	}
	return s.RecordCreated(draft, order, intent, now)
}

// RecordCreated returns the record of an intent that was stored: the draft with its order, or, with replayed set, the intent that an earlier
// request with the same idempotency key made.
func (s *Service) RecordCreated(draft *transfer.Intent, order *transfer.Order, stored *transfer.Intent, now time.Time) (record *Record, replayed bool, err error) {
	if s.Created != nil {
		s.Created(stored)
	}
	blockTime := s.blockTime(stored)
	if stored == draft {
		record, err = newRecord(stored, order, now, blockTime)
		return record, false, err
	}
	if record, err = NewRecord(stored.AsCreated(), now, blockTime); err != nil {
		return nil, false, err
	}
	record.Tx, err = stored.TxOf(record.Order, now, blockTime)
	return record, true, err
}

// firstOr returns the intent that an earlier request with the idempotency key made, or the rejection of this request if there is
// none.
func (s *Service) firstOr(ctx context.Context, by transfer.Caller, idempotency intents.Idempotency, rejection error) (*transfer.Intent, error) {
	intent, err := s.Store.TransferByIdempotencyKey(ctx, by.AccountID, idempotency)
	if errors.Is(err, intents.ErrTransferNotFound) {
		return nil, rejection
	}
	return intent, err
}
