package intents

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// ErrBatchTooLarge is returned for a batch of more than wire.MaxTransferBatch intents.
var ErrBatchTooLarge = errors.New("the batch has too many transfers")

// BatchError is returned for a batch of which nothing was done because of some of its items.
type BatchError struct {
	// Refused are the items, ascending.
	Refused []RefusedItem
}

// RefusedItem is an item of a batch with the error that it would have alone.
type RefusedItem struct {
	// Index is the item's place in the batch, from 0.
	Index int
	Err   error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("%d items of the batch are refused, the first is %d: %v", len(e.Refused), e.Refused[0].Index, e.Refused[0].Err)
}

// Unwrap returns the errors of the items.
func (e *BatchError) Unwrap() []error {
	all := make([]error, len(e.Refused))
	for n, item := range e.Refused {
		all[n] = item.Err
	}
	return all
}

// BatchRecord is a batch with the records of its intents, in the order of its request.
type BatchRecord struct {
	*Batch
	Transfers []*Record
}

// CreateBatch stores the intents of a batch with their first events, all of them or none, durable when it returns. It returns an
// *EnvironmentError with a path, ErrBatchTooLarge, a *screening.NotAllowedError, a *BatchError of *transfer.Rejection, postgres.ErrKeyReused, or
// an error of Store.InsertBatch.
//
// A request whose idempotency key has made a batch of the same items stores nothing: replayed is set and the records are those of the first
// response, with the transactions as they are now. As with Create, this holds even if the request would be rejected now.
func (s *Service) CreateBatch(ctx context.Context, by transfer.Caller, requests []wire.TransferRequest, key string) (record *BatchRecord, replayed bool, err error) {
	known := s.Registry.Current()
	for n, request := range requests {
		if err := CheckEnvironment(request, known, by.Environment); err != nil {
			return nil, false, atItem(err, n, request)
		}
	}
	if len(requests) > wire.MaxTransferBatch {
		return nil, false, ErrBatchTooLarge
	}
	drafts, refusal := s.draftBatch(by, requests, known)
	if refusal != nil {
		if record, err = s.repeated(ctx, by, requests, key); record == nil && err == nil {
			err = s.Screening.Refused(ctx, AboutCreation(by), refusal)
		}
		return record, true, err
	}
	record = &BatchRecord{Batch: &Batch{
		ID: transfer.NewID(s.Store.Now()), AccountID: by.AccountID, KeyID: by.KeyID, Environment: by.Environment, Count: len(requests),
	}}
	intents := make([]*transfer.Intent, len(drafts))
	for n := range drafts {
		intents[n] = drafts[n].intent
		intents[n].BatchID = record.ID
	}
	inserted, err := s.Store.InsertBatch(ctx, record.Batch, key, intents)
	switch {
	case err != nil:
		return nil, false, err
	case !inserted:
		if record, err = s.repeated(ctx, by, requests, key); record == nil && err == nil {
			err = postgres.ErrKeyReused
		}
		return record, true, err
	}
	created := make([]recordAt, len(drafts))
	for n, d := range drafts {
		if created[n], err = s.recordCreated(ctx, d.intent, d.order, d.intent, s.Store.Now()); err != nil {
			return nil, false, err
		}
		record.Transfers = append(record.Transfers, created[n].Record)
	}
	return record, false, s.addPermits(ctx, created...)
}

// atItem adds the path of an item to its error.
func atItem(err error, index int, request wire.TransferRequest) error {
	if wrong, ok := errors.AsType[*EnvironmentError](err); ok {
		wrong.Path = wire.BatchPath(index, request.PathOf(wrong.Chain))
	}
	return err
}

// draft is an intent that is not stored, with its order.
type draft struct {
	intent *transfer.Intent
	order  *transfer.Order
}

// draftBatch makes the intents of a batch, or returns the refusal of all: what the screening list has, or else the rejected items.
func (s *Service) draftBatch(by transfer.Caller, requests []wire.TransferRequest, known *registry.Snapshot) ([]draft, error) {
	drafts := make([]draft, len(requests))
	rejected := &BatchError{}
	var screened *screening.NotAllowedError
	for n, id := range transfer.NewIDs(s.Store.Now(), len(requests)) {
		var err error
		drafts[n].intent, drafts[n].order, err = s.draftAs(id, by, requests[n], known)
		listed, isListed := errors.AsType[*screening.NotAllowedError](err)
		_, isRejection := errors.AsType[*transfer.Rejection](err)
		switch {
		case isListed:
			screened = screened.AddItem(wire.BatchPath(n, ""), listed)
		case isRejection:
			rejected.Refused = append(rejected.Refused, RefusedItem{n, err})
		case err != nil:
			return nil, err
		}
	}
	switch {
	case screened != nil:
		return nil, screened
	case len(rejected.Refused) > 0:
		return nil, rejected
	default:
		return drafts, nil
	}
}

// repeated returns the record of the batch that the same request has made before, nil if there is none.
func (s *Service) repeated(ctx context.Context, by transfer.Caller, requests []wire.TransferRequest, key string) (*BatchRecord, error) {
	batch, err := s.Store.BatchByIdempotencyKey(ctx, by.AccountID, by.Environment, key)
	if errors.Is(err, ErrBatchNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	stored, err := s.Store.BatchTransfers(ctx, batch.AccountID, batch.ID)
	if err == nil {
		err = s.Store.readFirst(ctx, batch.AccountID, stored...)
	}
	if err != nil || !s.answersAll(batch, stored, requests) {
		return nil, err
	}
	histories, err := s.Store.TransferHistories(ctx, stored)
	if err != nil {
		return nil, err
	}
	record, now := &BatchRecord{Batch: batch}, s.Store.Now()
	all := make([]recordAt, len(stored))
	for n, intent := range stored {
		if s.Created != nil {
			s.Created(intent)
		}
		all[n].at = s.momentOf(intent, histories[intent.ID], now)
		if all[n].Record, err = s.recordRepeated(ctx, intent, all[n].at); err != nil {
			return nil, err
		}
		record.Transfers = append(record.Transfers, all[n].Record)
	}
	return record, s.addPermits(ctx, all...)
}

// answersAll reports whether a batch was made by a request of these items, in this order, as Answers does of one. Retention may have removed
// some of its intents.
func (s *Service) answersAll(batch *Batch, stored []*transfer.Intent, requests []wire.TransferRequest) bool {
	if len(requests) != batch.Count {
		return false
	}
	answered, known := 0, s.Registry.Current()
	for _, request := range requests {
		source, _ := known.Chain(request.Source.Account.Chain)
		if answered < len(stored) && stored[answered].Answers(request, source) {
			answered++
		}
	}
	return answered == len(stored)
}

// FindBatch returns one of an account's batches of an environment by its UUID with its intents, in the order of its request. It returns
// ErrBatchNotFound for any other.
func (s *Service) FindBatch(ctx context.Context, accountID uuid.UUID, environment network.Environment, name string) (*Batch, []*transfer.Intent, error) {
	id, err := uuid.Parse(name)
	if err != nil || len(name) != len(id.String()) { // Parse accepts other spellings too
		return nil, nil, ErrBatchNotFound
	}
	batch, err := s.Store.Batch(ctx, accountID, environment, id)
	if err != nil {
		return nil, nil, err
	}
	intents, err := s.Store.BatchTransfers(ctx, accountID, id)
	if err == nil && len(intents) == 0 { // retention has just removed the last
		return nil, nil, ErrBatchNotFound
	}
	return batch, intents, err
}

// StatusCount is how many intents are in a status.
type StatusCount struct {
	Status transfer.Status
	Count  int
}

// CountStatuses counts intents by their statuses, in the order of a life, without the statuses that none has.
func CountStatuses(intents []*transfer.Intent) (counts []StatusCount) {
	of := map[transfer.Status]int{}
	for _, intent := range intents {
		of[intent.Status]++
	}
	for _, status := range transfer.Statuses {
		if of[status] > 0 {
			counts = append(counts, StatusCount{status, of[status]})
		}
	}
	return counts
}

// BatchCalls returns what a wallet sends for the intents of a batch, with up to most calls in a request, see transfer.PlanCalls.
func (s *Service) BatchCalls(ctx context.Context, intents []*transfer.Intent, most int) ([]transfer.SendCalls, []transfer.Excluded, error) {
	now := s.Store.Now()
	items := make([]transfer.Payable, len(intents))
	for n, intent := range intents {
		items[n].Intent = intent
		if intent.Status != transfer.Created {
			continue // what was reported once is not handed out a second time
		}
		at := s.momentOf(intent, transfer.History{}, now)
		var err error
		if items[n].Tx, err = intent.Tx(at); err != nil {
			return nil, nil, err
		}
		s.recordWithheld(ctx, intent, at)
	}
	return transfer.PlanCalls(items, now, most)
}
