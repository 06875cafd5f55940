// Package chains stores what the watcher of each chain has read, and the transactions of intents.
package chains

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
)

// Store has the tables of core/chains. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	intents *intents.Store
}

// New is the store of a database, with that of the intents that the chains carry out.
func New(db *postgres.DB, of *intents.Store) *Store { return &Store{db: db, intents: of} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Tx is a transaction that may change intents, too.
type Tx struct {
	intents.Tx

	db bun.Tx
}

// InTx runs work in a transaction, see postgres.DB.InTx.
func (s *Store) InTx(ctx context.Context, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{intents.Within(tx), tx}) })
}
