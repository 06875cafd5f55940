package intents

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/identity/identities"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
)

var (
	// ErrExecuted is returned for the report of a transaction after another one has executed the intent.
	ErrExecuted = errors.New("another transaction has executed the intent")
	// ErrTooManyAttempts is returned for the report of a transaction beyond the number that an intent can have.
	ErrTooManyAttempts = errors.New("the intent has as many transactions as it can have")
)

// Report records the hash of a transaction that the client has sent for an intent, and returns the intent changed. The same hash
// again changes nothing; another hash is another attempt. The grant is that of the caller to the account.
func (s *Service) Report(ctx context.Context, grant identities.Grant, intent *transfer.Intent, hash common.Hash) (*transfer.Intent, error) {
	reported, added, err := s.Store.ReportTransaction(ctx, grant, intent.AccountID, intent.ID, hash)
	switch {
	case errors.Is(err, transfer.ErrTransition) && !reported.Executed():
		return nil, &StatusError{reported.Status, ErrTooManyAttempts}
	case errors.Is(err, transfer.ErrTransition):
		return nil, &StatusError{reported.Status, ErrExecuted}
	case err != nil:
		return nil, err
	}
	if added {
		_ = s.Screening.Refused(ctx, screening.AboutIntent(screening.OnChain, intent), s.Screening.CheckIntent(screening.OnChain, intent))
	}
	if added && s.Reported != nil {
		s.Reported(intent.Source.Account.Chain, intent.AccountID, intent.ID, hash)
	}
	return reported, nil
}
