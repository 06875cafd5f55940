package intents

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/pkg/fair"
)

// Store has the rows of the package. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	writer  *transferWriter
	metrics *metrics
	// batches bounds the batches that are inserted at once.
	batches *fair.Slots[uuid.UUID]
	// unreadable is told of rows that this version cannot read.
	unreadable atomic.Pointer[func(error)]
}

// NewStore is the store of a database, which writes the intents that wait for a commit when it is closed.
func NewStore(db *postgres.DB) *Store {
	m := newMetrics(db.Metrics)
	return &Store{db: db, writer: newTransferWriter(db, m), metrics: m, batches: fair.New[uuid.UUID](batchPlaces, fair.AtMost(1))}
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
