package intents

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
)

var (
	// ErrExecuted is returned for the report of a transaction after another one has executed the intent.
	ErrExecuted = errors.New("another transaction has executed the intent")
	// ErrTooManyAttempts is returned for the report of a transaction beyond the number that an intent can have.
	ErrTooManyAttempts = errors.New("the intent has as many transactions as it can have")
)

// ErrBatchNotUniform is returned for a report of a batch whose intents have several source accounts.
var ErrBatchNotUniform = errors.New("the intents have several source accounts")

// Report records the hash of a transaction that the client has sent for an intent, and returns the intent changed. The same hash
// again changes nothing; another hash is another attempt. It returns a *StatusError of ErrExecuted or ErrTooManyAttempts. The grant is that of the
// caller to the account.
func (s *Service) Report(ctx context.Context, grant access.Grant, intent *transfer.Intent, hash common.Hash) (*transfer.Intent, error) {
	reported, err := s.report(ctx, grant, []*transfer.Intent{intent}, hash)
	if refused, ok := errors.AsType[*BatchError](err); ok {
		return nil, refused.Refused[0].Err
	}
	if err != nil {
		return nil, err
	}
	return reported[0].Intent, nil
}

// ReportBatch is Report for intents of one account: one transaction has paid for all of them, or none is changed. It returns
// ErrBatchNotUniform, or a *BatchError by the place of each in intents.
func (s *Service) ReportBatch(ctx context.Context, grant access.Grant, intents []*transfer.Intent, hash common.Hash) error {
	for _, intent := range intents {
		if intent.Source.Account != intents[0].Source.Account {
			return ErrBatchNotUniform
		}
	}
	_, err := s.report(ctx, grant, intents, hash)
	return err
}

func (s *Service) report(ctx context.Context, grant access.Grant, intents []*transfer.Intent, hash common.Hash) ([]Reported, error) {
	ids := make([]uuid.UUID, len(intents))
	for n, intent := range intents {
		ids[n] = intent.ID
	}
	reported, err := s.Store.ReportTransaction(ctx, grant, intents[0].AccountID, ids, hash)
	if err != nil {
		return nil, err
	}
	for _, r := range reported {
		if !r.Added {
			continue
		}
		_ = s.Screening.Refused(ctx, screening.AboutIntent(screening.OnChain, r.Intent), s.Screening.CheckIntent(screening.OnChain, r.Intent))
		if s.Reported != nil {
			s.Reported(r.Source.Account.Chain, r.AccountID, r.ID, hash)
		}
	}
	return reported, nil
}
