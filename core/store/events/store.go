// Package events stores the feed of events, and the webhooks with their deliveries.
package events

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/store/identities"
	"intents.internal/core/store/postgres"
)

// Store has the tables of core/events. It is safe for concurrent use.
type Store struct {
	db   *postgres.DB
	feed *feedMetrics
}

// New is the store of a database.
func New(db *postgres.DB) *Store { return &Store{db: db, feed: newFeedMetrics(db.Metrics)} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Tx is a transaction that may write what belongs to an account, too: its audit log and its mails.
type Tx struct {
	identities.Tx

	db bun.Tx
}

// InTx runs work in a transaction, see postgres.DB.InTx.
func (s *Store) InTx(ctx context.Context, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{identities.Within(tx), tx}) })
}
