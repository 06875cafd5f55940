package postgres

import (
	"context"

	"github.com/uptrace/bun"
)

// Tx is a transaction.
type Tx struct{ db bun.Tx }

// InTx runs work in a transaction, which commits if work returns nil and is rolled back otherwise. It returns work's error
// unchanged.
func (s *Store) InTx(ctx context.Context, work func(context.Context, Tx) error) error {
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx}) })
}
