package quotes

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/transfer"
)

// storeTimeout bounds the write of a solver's answer, which must not be lost with the client.
const storeTimeout = 10 * time.Second

// solver is the provider that takes the order of an intent, nil for none.
func (s *Service) solver(intent *transfer.Intent) *provider.Provider {
	return s.Providers.Solver(intent.Environment, intent.Quote.Provider)
}

// Sign is intents.Service.Sign, and hands the order of an intent that is to be submitted to its solver, once, if every check of the preflight is
// good. Where one is not, nothing is sent, and the same signature can be given again.
func (s *Service) Sign(ctx context.Context, grant access.Grant, intent *transfer.Intent, given []byte) (*transfer.Intent, error) {
	signed, err := s.Intents.Sign(ctx, grant, intent, given)
	if err != nil || !signed.Signing.Submit || signed.Signing.Submitted != nil {
		return signed, err
	}
	return s.submit(ctx, grant, signed)
}

// submit returns the intent with what the solver answered. The attempt is recorded before the request, so that there is never a second one,
// whatever becomes of this core: an order that failed at a solver is never filled by it.
func (s *Service) submit(ctx context.Context, grant access.Grant, intent *transfer.Intent) (*transfer.Intent, error) {
	solver := s.solver(intent)
	if solver == nil { // it was removed since
		return intent, nil
	}
	order, err := s.Intents.SubmittableOrder(ctx, intent)
	if err != nil || order == nil {
		return intent, err
	}
	release, ok := solver.Reserve(intent.AccountID)
	if !ok {
		return intent, nil
	}
	defer release()
	store := s.Intents.Store
	begun, err := store.BeginSubmission(ctx, grant, intent.AccountID, intent.ID, provider.Unanswered)
	if err != nil {
		return nil, err
	}
	if begun {
		ctx := context.WithoutCancel(ctx) // the order is sent once, so the answer matters after the client has left
		verdict := solver.Submit(ctx, order)
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := store.SaveSubmission(ctx, intent.AccountID, intent.ID, verdict.Status, verdict.Detail, !verdict.Final()); err != nil {
			return nil, err
		}
	}
	return store.Transfer(ctx, intent.AccountID, intent.ID)
}

// FollowSubmissions asks solvers what became of some of the orders that they were handed, of accounts after one. next and more are those of
// Store.TakeSubmissions. It returns once all have answered, or their timeouts have passed.
func (s *Service) FollowSubmissions(ctx context.Context, after uuid.UUID) (next uuid.UUID, more bool, err error) {
	due, next, more, err := s.Intents.Store.TakeSubmissions(ctx, after)
	if err != nil {
		return after, false, err
	}
	var asked sync.WaitGroup
	failures := make([]error, len(due))
	for n, intent := range due {
		asked.Go(func() { failures[n] = s.follow(ctx, intent) })
	}
	asked.Wait()
	for _, failure := range failures {
		if failure != nil {
			return next, false, failure
		}
	}
	return next, more, nil
}

// follow asks about one order.
func (s *Service) follow(ctx context.Context, intent *transfer.Intent) error {
	solver := s.solver(intent)
	if solver == nil {
		return nil
	}
	detail, failed := solver.OrderFailed(ctx, intent.AccountID, intent.OrderID)
	if !failed {
		return nil
	}
	return s.Intents.Store.SaveSubmission(ctx, intent.AccountID, intent.ID, transfer.SubmissionFailed, detail, false)
}
