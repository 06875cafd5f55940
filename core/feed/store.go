package feed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// Store has the rows of the package. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	metrics *storeMetrics
	// confirmed is the newest position that is known to be as durable as a commit.
	confirmed atomic.Int64
}

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db: db, metrics: newStoreMetrics(db.Metrics)} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Tx is a transaction that may write events.
type Tx struct {
	db bun.Tx
	// appended are the events that InTx adds to the feed at the end.
	appended *[]appendedEvent
}

// InTx runs work in a transaction, see postgres.DB.InTx. The events of AppendEvent are its last statement, because they take the lock of
// the feed, which every event waits for.
func (s *Store) InTx(ctx context.Context, turn postgres.Turn, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, turn, func(ctx context.Context, bunTx bun.Tx) error {
		tx := Tx{bunTx, &[]appendedEvent{}}
		if err := work(ctx, tx); err != nil {
			return err
		}
		return tx.writeAppended(ctx)
	})
}

// Bun is the transaction without the feed.
func (tx Tx) Bun() bun.Tx { return tx.db }
