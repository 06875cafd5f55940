// Package chains stores what the watcher of each chain has read, and the transactions of intents.
package chains

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
)

// Store has the tables of core/chains. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	intents *intents.Store
	// unreadable is told of rows that this version cannot read.
	unreadable atomic.Pointer[func(error)]
}

// OnUnreadable has report called for each row that this version cannot read, such as one of a later version during an upgrade. The other
// rows of its statement are read, and it is left to the other version.
func (s *Store) OnUnreadable(report func(error)) { s.unreadable.Store(&report) }

func (s *Store) skip(err error) {
	if report := s.unreadable.Load(); report != nil {
		(*report)(err)
	}
}

// readEach parses rows, and skips those that this version cannot read.
func readEach[Row, T any](s *Store, rows []Row, parse func(Row) (T, error)) []T {
	read := make([]T, 0, len(rows))
	for _, row := range rows {
		t, err := parse(row)
		if err != nil {
			s.skip(err)
			continue
		}
		read = append(read, t)
	}
	return read
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
func (s *Store) InTx(ctx context.Context, turn postgres.Turn, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, turn, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{intents.Within(tx), tx}) })
}
