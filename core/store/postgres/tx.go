package postgres

import (
	"context"

	"github.com/uptrace/bun"
)

// Tx is a transaction.
type Tx struct{ db bun.Tx }

// InTx runs work in a transaction, which commits if work returns nil and is rolled back otherwise. It returns work's error
// unchanged, and an OutcomeUnknownError if the result of the commit did not arrive.
func (s *Store) InTx(ctx context.Context, work func(context.Context, Tx) error) error {
	commits := false
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := work(ctx, Tx{tx})
		commits = err == nil
		return err
	})
	if commits {
		return outcomeOf(err)
	}
	return err
}
