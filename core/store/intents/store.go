// Package intents stores transfer intents with their events, and the registry of chains and tokens.
package intents

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/store/postgres"
)

// Store has the tables of core/intent. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	writer  *transferWriter
	metrics *metrics
}

// New is the store of a database, which writes the intents that wait for a commit when it is closed.
func New(db *postgres.DB) *Store {
	m := newMetrics(db.Metrics)
	return &Store{db: db, writer: newTransferWriter(db, m), metrics: m}
}

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Confirm waits until what was read is durable, see postgres.DB.Confirm.
func (s *Store) Confirm(ctx context.Context) error { return s.db.Confirm(ctx) }

// Tx is a transaction.
type Tx struct{ db bun.Tx }

// Within gives the statements of this package to a transaction.
func Within(tx bun.Tx) Tx { return Tx{tx} }

// InTx runs work in a transaction, see postgres.DB.InTx.
func (s *Store) InTx(ctx context.Context, turn postgres.Turn, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, turn, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx}) })
}
