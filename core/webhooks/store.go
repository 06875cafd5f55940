package webhooks

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
)

// Store has the rows of the package. It is safe for concurrent use.
type Store struct {
	db   *postgres.DB
	feed *feed.Store
}

// NewStore is the store of a database, with the feed whose events webhooks deliver.
func NewStore(db *postgres.DB, feed *feed.Store) *Store { return &Store{db: db, feed: feed} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Tx is a transaction that may write events, and what belongs to an account, too.
type Tx struct {
	feed.Tx

	access access.Tx
	db     bun.Tx
}

// InTx runs work in a transaction, see feed.Store.InTx.
func (s *Store) InTx(ctx context.Context, turn postgres.Turn, work func(context.Context, Tx) error) error {
	return s.feed.InTx(ctx, turn, func(ctx context.Context, tx feed.Tx) error {
		return work(ctx, Tx{tx, access.Within(tx.Bun()), tx.Bun()})
	})
}
