// Package quotes is what users do with quotes: ask what a swap or bridge brings, and make an intent of an offer. The API and the console call
// the same operations.
//
// The subpackages define what a quote is and ask the providers; rows.go stores quotes, and makes one intent of each.
package quotes

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Config is what the service needs.
type Config struct {
	Store    *Store
	Registry *registry.LiveRegistry
	Intents  *intents.Service
	// Providers are asked for quotes; nil for none.
	Providers *provider.Providers
}

// Service is safe for concurrent use.
type Service struct {
	Config
	prices *prices
}

// New returns a service.
func New(config Config) *Service { return &Service{config, &prices{}} }

// Find returns an account's quote of the key's environment, also one that has expired, or ErrNotFound.
func (s *Service) Find(ctx context.Context, accountID uuid.UUID, environment network.Environment, name string) (quote.Quote, error) {
	id, err := uuid.Parse(name)
	if err != nil || len(name) != 36 { // Parse accepts other spellings too
		return quote.Quote{}, ErrNotFound
	}
	return s.Store.Find(ctx, accountID, environment, id)
}

// ErrMismatch is returned for an intent whose body differs from its quote.
var ErrMismatch = errors.New("the request differs from its quote")

// Create stores the intent that a quote makes. It returns the errors of Find, an *intents.EnvironmentError, a *screening.NotAllowedError, ErrMismatch, a *transfer.Rejection
// where the registry has changed since, and the errors of Store.Use. An idempotency key is replayed as in intents.Service.Create, also
// after the quote's end or removal. The grant is that of the caller to the account.
func (s *Service) Create(
	ctx context.Context, grant access.Grant, by transfer.Caller, request wire.TransferRequest, key string,
) (record *intents.Record, replayed bool, err error) {
	if err := intents.CheckEnvironment(request, s.Registry.Current(), by.Environment); err != nil {
		return nil, false, err
	}
	now := s.Store.Now()
	idempotency := intents.Idempotency{Key: key, Environment: by.Environment, Request: request}
	draft, order, err := s.draft(ctx, by, request, now)
	if err == nil {
		err = s.Store.Use(ctx, grant, draft, key)
	}
	stored := draft
	if err != nil && key != "" && refused(err) {
		stored, err = s.Intents.FirstOr(ctx, by, idempotency, err)
	}
	if err != nil {
		return nil, false, s.screen().Refused(ctx, intents.AboutCreation(by), err)
	}
	return s.Intents.RecordCreated(ctx, draft, order, stored, now)
}

// screen is the check of the accounts that quotes and intents are made for.
func (s *Service) screen() *screening.Screen { return s.Intents.Screening }

// draft makes the intent of the request's quote. The accounts that the request names are screened before the quote is looked for, and then those
// that the quote has.
func (s *Service) draft(ctx context.Context, by transfer.Caller, request wire.TransferRequest, now time.Time) (*transfer.Intent, *transfer.Order, error) {
	if err := s.screen().Check(screening.AtCreation, by.Environment, request.Source.Account, request.Destination.Account); err != nil {
		return nil, nil, err
	}
	q, err := s.Find(ctx, by.AccountID, by.Environment, request.QuoteID)
	if err != nil {
		return nil, nil, err
	}
	return s.draftOf(by, request, q, now)
}

// Draft returns the intent that Create would make of a request and its quote, without storing it. It returns a
// *screening.NotAllowedError, ErrMismatch or a *transfer.Rejection.
func (s *Service) Draft(ctx context.Context, by transfer.Caller, request wire.TransferRequest, q quote.Quote) (*transfer.Intent, error) {
	draft, _, err := s.draftOf(by, request, q, s.Store.Now())
	return draft, s.screen().Refused(ctx, intents.AboutCreation(by), err)
}

func (s *Service) draftOf(by transfer.Caller, request wire.TransferRequest, q quote.Quote, now time.Time) (*transfer.Intent, *transfer.Order, error) {
	if err := s.screen().Check(screening.AtCreation, q.Environment, q.Source.Account, q.Destination.Account); err != nil {
		return nil, nil, err
	}
	quoted, ok := complete(request, q)
	if !ok {
		return nil, nil, ErrMismatch
	}
	of := transfer.Quote{ID: q.ID, Provider: q.Provider, ExpiresAt: q.ExpiresAt}
	draft, order, err := transfer.NewQuoted(transfer.NewID(now), by, quoted, s.Registry.Current(), q.Settlement, of)
	if err == nil && request.Submit && s.solver(draft) == nil {
		err = transfer.RejectSubmit()
	}
	if err != nil {
		return nil, nil, err
	}
	return draft, order, nil
}

// complete returns the request with what its quote has; ok is false if it names something else.
func complete(r wire.TransferRequest, q quote.Quote) (completed wire.TransferRequest, ok bool) {
	completed = wire.TransferRequest{
		Source: legOf(q.Source), Destination: legOf(q.Destination), Deadline: q.Deadline, Reference: r.Reference, QuoteID: r.QuoteID,
		Signing: r.Signing, Submit: r.Submit, Labels: r.Labels,
	}
	if r.Signing != "" && q.DefaultDeadline && r.Deadline.IsZero() {
		completed.Deadline = time.Time{}
	}
	if !r.Deadline.IsZero() && !r.Deadline.Truncate(time.Second).Equal(q.Deadline) {
		return completed, false
	}
	if r.Source == (wire.Leg{}) && r.Destination == (wire.Leg{}) {
		return completed, true
	}
	if r.Destination.Token == (caip.AccountID{}) {
		r.Destination.Token = r.Source.Token
	}
	return completed, r.Source == completed.Source && r.Destination == completed.Destination
}

func legOf(l transfer.Leg) wire.Leg {
	return wire.Leg{Account: l.Account, Token: l.Token, Amount: l.Amount.String()}
}

// refused reports whether nothing was written, so that an earlier request may have used the quote.
func refused(err error) bool {
	_, used := errors.AsType[*UsedError](err)
	_, rejected := errors.AsType[*transfer.Rejection](err)
	_, screened := errors.AsType[*screening.NotAllowedError](err)
	return used || rejected || screened || errors.Is(err, ErrExpired) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrMismatch)
}
