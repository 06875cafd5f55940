// Package watched has the rows of the chains that are followed: which process follows each, how far it has read, and the blocks it knows.
package watched

import (
	"context"

	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// Store has the rows of the package. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db} }

// Tx is a transaction.
type Tx struct{ db bun.Tx }

// Within gives the statements of this package to a transaction.
func Within(tx bun.Tx) Tx { return Tx{tx} }

func (s *Store) inTx(ctx context.Context, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx}) })
}
