package intents

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// Draft returns the intent that Create would make of a request, without storing it. It returns an *EnvironmentError, a
// *screening.NotAllowedError or a *transfer.Rejection.
func (s *Service) Draft(ctx context.Context, by transfer.Caller, request wire.TransferRequest) (*transfer.Intent, error) {
	draft, _, err := s.draft(by, request, s.Store.Now())
	return draft, s.Screening.Refused(ctx, AboutCreation(by), err)
}

func (s *Service) draft(by transfer.Caller, request wire.TransferRequest, now time.Time) (*transfer.Intent, *transfer.Order, error) {
	known := s.Registry.Current()
	if err := CheckEnvironment(request, known, by.Environment); err != nil {
		return nil, nil, err
	}
	return s.draftAs(transfer.NewID(now), by, request, known)
}

// draftAs makes the intent of a request whose chains are of the caller's environment.
func (s *Service) draftAs(id uuid.UUID, by transfer.Caller, request wire.TransferRequest, known *registry.Snapshot) (*transfer.Intent, *transfer.Order, error) {
	if err := s.Screening.Check(screening.AtCreation, by.Environment, request.Source.Account, request.Destination.Account); err != nil {
		return nil, nil, err
	}
	return transfer.NewWithOrder(id, by, request, known)
}

// Create stores the intent of a request with its first event, both durable when it returns. It returns the errors of Draft and of
// Store.InsertTransfer.
//
// A request with an idempotency key that the account has used before in the key's environment stores nothing: replayed is set and
// the record is that of the first response, but without the transaction if the intent has changed since, because it must not be
// sent any more. This holds even if the request would be rejected now, because its deadline is too near or a token has left the
// registry.
func (s *Service) Create(ctx context.Context, by transfer.Caller, request wire.TransferRequest, key string) (record *Record, replayed bool, err error) {
	return s.create(ctx, nil, by, request, key)
}

// CreateGranted is Create for a caller whose rights are read in the transaction that stores the intent. It also returns the error of the
// grant.
func (s *Service) CreateGranted(
	ctx context.Context, grant access.Grant, by transfer.Caller, request wire.TransferRequest, key string,
) (record *Record, replayed bool, err error) {
	return s.create(ctx, &grant, by, request, key)
}

// create asks for a grant unless it is nil.
func (s *Service) create(
	ctx context.Context, grant *access.Grant, by transfer.Caller, request wire.TransferRequest, key string,
) (record *Record, replayed bool, err error) {
	c, err := s.prepare(by, request, key)
	var intent *transfer.Intent
	if err == nil && grant != nil {
		intent, err = s.Store.InsertTransferGranted(ctx, *grant, c.draft, c.idempotency)
	} else if err == nil {
		intent, err = s.Store.InsertTransfer(ctx, c.draft, c.idempotency)
	} else if refused(err) && key != "" {
		intent, err = s.FirstOr(ctx, by, c.idempotency, err)
	}
	if err != nil {
		return nil, false, s.Screening.Refused(ctx, AboutCreation(by), err)
	}
	return s.RecordCreated(ctx, c.draft, c.order, intent, c.now)
}

// refused reports whether nothing was written, so that an earlier request may have made the intent.
func refused(err error) bool {
	_, rejected := errors.AsType[*transfer.Rejection](err)
	_, screened := errors.AsType[*screening.NotAllowedError](err)
	return rejected || screened
}

// AboutCreation is what the screening list was met at where a caller creates an intent.
func AboutCreation(by transfer.Caller) screening.About {
	return screening.About{Stage: screening.AtCreation, AccountID: by.AccountID, KeyID: by.KeyID, Environment: by.Environment}
}

// Creation is a request that Create would store, for a caller that stores several at once: it enqueues their Inserts together and passes the
// result of each to Finish.
type Creation struct {
	// Insert is set by Prepare.
	Insert      *Insert
	draft       *transfer.Intent
	order       *transfer.Order
	idempotency Idempotency
	now         time.Time
}

// Prepare returns the creation of a request, or an error of Draft, after which Create records a hit of the screening list. The result of its insert is sent to results, which must have room for it.
func (s *Service) Prepare(ctx context.Context, by transfer.Caller, request wire.TransferRequest, key string, results chan<- Result) (*Creation, error) {
	c, err := s.prepare(by, request, key)
	if err != nil {
		return nil, err
	}
	c.Insert = s.Store.NewInsert(ctx, c.draft, c.idempotency, results)
	return c, nil
}

// Finish returns what Create returns for a creation whose insert has this result. Only for a duplicate it reads the database.
func (s *Service) Finish(ctx context.Context, c *Creation, result Result) (record *Record, replayed bool, err error) {
	intent, err := s.Store.Inserted(ctx, result)
	if err != nil {
		return nil, false, err
	}
	return s.RecordCreated(ctx, c.draft, c.order, intent, c.now)
}

// Asks reports whether Finish asks a node of the source chain: for the permit of an intent that is signed by Permit2.
func (c *Creation) Asks() bool { return c.draft.Signing.Scheme == wire.Permit2 }

// prepare drafts the intent of a request. A rejection comes with the creation, which has the idempotency key.
func (s *Service) prepare(by transfer.Caller, request wire.TransferRequest, key string) (c *Creation, err error) {
	c = &Creation{now: s.Store.Now(), idempotency: Idempotency{Key: key, Environment: by.Environment, Request: request}}
	if key != "" {
		c.idempotency.Source, _ = s.Registry.Current().Chain(request.Source.Account.Chain)
	}
	c.draft, c.order, err = s.draft(by, request, c.now)
	return c, err
}

// RecordCreated returns the record of an intent that was stored: the draft with its order, or, with replayed set, the intent that an earlier
// request with the same idempotency key made.
func (s *Service) RecordCreated(
	ctx context.Context, draft *transfer.Intent, order *transfer.Order, stored *transfer.Intent, now time.Time,
) (record *Record, replayed bool, err error) {
	created, err := s.recordCreated(ctx, draft, order, stored, now)
	if err != nil {
		return nil, false, err
	}
	return created.Record, stored != draft, s.addPermits(ctx, created)
}

// recordCreated is RecordCreated without the permit.
func (s *Service) recordCreated(
	ctx context.Context, draft *transfer.Intent, order *transfer.Order, stored *transfer.Intent, now time.Time,
) (created recordAt, err error) {
	if s.Created != nil {
		s.Created(stored)
	}
	if stored == draft {
		created.at = s.momentOf(stored, transfer.History{}, now)
		if created.Record, err = newRecord(stored, order, created.at); err != nil {
			return created, err
		}
		s.recordWithheld(ctx, stored, created.at)
		return created, nil
	}
	history, err := s.Store.TransferHistory(ctx, stored)
	if err != nil {
		return created, err
	}
	created.at = s.momentOf(stored, history, now)
	created.Record, err = s.recordRepeated(ctx, stored, created.at)
	return created, err
}

// recordRepeated returns the record of an intent's first response, with the transaction as it is now.
func (s *Service) recordRepeated(ctx context.Context, stored *transfer.Intent, at transfer.Moment) (*Record, error) {
	record, err := NewRecord(stored.AsCreated(), at)
	if err != nil {
		return nil, err
	}
	s.recordWithheld(ctx, stored, at)
	if record.Tx, err = stored.TxOf(record.Order, at); err != nil {
		return nil, err
	}
	record.Signature, err = stored.SignatureAt(record.Order, at)
	return record, err
}

// FirstOr returns the intent that an earlier request with the idempotency key made, or the refusal of this request if there is none. A request
// with another body that is refused by the screening list is not told that the key was used.
func (s *Service) FirstOr(ctx context.Context, by transfer.Caller, idempotency Idempotency, refusal error) (*transfer.Intent, error) {
	intent, err := s.Store.TransferByIdempotencyKey(ctx, by.AccountID, idempotency)
	_, screened := errors.AsType[*screening.NotAllowedError](refusal)
	if errors.Is(err, ErrTransferNotFound) || screened && errors.Is(err, postgres.ErrKeyReused) {
		return nil, refusal
	}
	return intent, err
}
