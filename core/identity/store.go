package identity

import (
	"context"
	"database/sql"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/postgres"
)

// Store has the rows of people, their accounts and keys. It is safe for concurrent use.
type Store struct {
	*access.Store

	db           *postgres.DB
	keyChangeLag prometheus.Histogram
}

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store {
	return &Store{Store: access.NewStore(db), db: db, keyChangeLag: newKeyChangeLag(db.Metrics)}
}

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Pool is the database without the store.
func (s *Store) Pool() *sql.DB { return s.db.Pool() }

// Tx is a transaction.
type Tx struct {
	access.Tx

	db bun.Tx
}

// Within gives the statements of this package to a transaction.
func Within(tx bun.Tx) Tx { return Tx{access.Within(tx), tx} }

// InTx runs work in a transaction, see postgres.DB.InTx.
func (s *Store) InTx(ctx context.Context, turn postgres.Turn, work func(context.Context, Tx) error) error {
	return s.db.InTx(ctx, turn, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Within(tx)) })
}

// QueueMailWithEntry queues a mail in the transaction, with an audit entry for the request.
func (tx Tx) QueueMailWithEntry(ctx context.Context, by access.Rights, d mail.Draft, entry account.AuditEntry) error {
	if err := by.Cover(tx.Tx, entry.AccountID); err != nil {
		return err
	}
	if err := mail.Within(tx.db).Insert(ctx, d); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}
