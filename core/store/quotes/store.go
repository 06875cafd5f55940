// Package quotes stores quotes, and makes one intent of each.
package quotes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/network"
)

// Store has the table of core/quotes. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	intents *intents.Store
}

// New is the store of a database, with that of the intents that quotes make.
func New(db *postgres.DB, of *intents.Store) *Store { return &Store{db: db, intents: of} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// Insert stores quotes in one statement.
func (s *Store) Insert(ctx context.Context, quotes []quote.Quote) error {
	if len(quotes) == 0 {
		return nil
	}
	rows := make([]row, len(quotes))
	for n, q := range quotes {
		rows[n] = newRow(q)
	}
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	if _, err := s.db.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return fmt.Errorf("insert %d quotes: %w", len(rows), err)
	}
	return nil
}

// ErrNotFound is returned for a quote that does not exist, or is of another account or environment.
var ErrNotFound = errors.New("the account has no such quote")

// Find reads one of an account's quotes of an environment.
func (s *Store) Find(ctx context.Context, accountID uuid.UUID, environment network.Environment, id uuid.UUID) (quote.Quote, error) {
	return find(ctx, s.db, accountID, environment, id)
}

func find(ctx context.Context, db bun.IDB, accountID uuid.UUID, environment network.Environment, id uuid.UUID) (quote.Quote, error) {
	var rows []row
	err := db.NewSelect().Model(&rows).Where("account_id = ? AND id = ? AND environment = ?", accountID, id, environment).Scan(ctx)
	switch {
	case err != nil:
		return quote.Quote{}, fmt.Errorf("read quote %s: %w", id, err)
	case len(rows) == 0:
		return quote.Quote{}, ErrNotFound
	}
	return rows[0].quote()
}

// ErrExpired is returned for the use of a quote that has expired by the database's clock.
var ErrExpired = errors.New("the quote has expired")

// UsedError is returned for the use of a quote that has made an intent.
type UsedError struct{ TransferID uuid.UUID }

func (e *UsedError) Error() string { return "the quote has made transfer " + e.TransferID.String() }

// errDuplicateKey rolls the use of a quote back: the idempotency key has made an intent before.
var errDuplicateKey = errors.New("the idempotency key is used")

// Use stores the intent that a quote makes, with its first event, and sets the intent's times, all in the transaction that marks the quote as
// used. It returns a *UsedError, ErrExpired or ErrNotFound if the quote cannot be used. An idempotency key that the account has used before
// in this environment writes nothing and returns the current intent of that key, or postgres.ErrKeyReused. After an OutcomeUnknownError
// the intent may be stored.
func (s *Store) Use(ctx context.Context, intent *transfer.Intent, idempotency intents.Idempotency) (*transfer.Intent, error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err := s.db.InTx(ctx, func(ctx context.Context, tx bun.Tx) error {
		if err := markUsed(ctx, tx, intent); err != nil {
			return err
		}
		inserted, err := intents.Within(tx).InsertTransfer(ctx, intent, idempotency.Key)
		if err == nil && !inserted {
			err = errDuplicateKey
		}
		return err
	})
	switch {
	case err == nil:
		s.intents.CountTransitions([]transfer.Event{{To: transfer.Created}})
		return intent, nil
	case errors.Is(err, errDuplicateKey):
		return s.intents.TransferByIdempotencyKey(ctx, intent.AccountID, idempotency)
	case postgres.IsOutcomeUnknown(err):
		return nil, &postgres.OutcomeUnknownError{Err: err, Repeatable: true} // the quote makes no second intent
	default:
		return nil, err
	}
}

// markUsed lets one transaction win: the others wait for the row and then find it used.
func markUsed(ctx context.Context, tx bun.Tx, intent *transfer.Intent) error {
	result, err := tx.NewUpdate().Model((*row)(nil)).Set("transfer_id = ?", intent.ID).
		Where("account_id = ? AND id = ? AND environment = ?", intent.AccountID, intent.Quote.ID, intent.Environment).
		Where("transfer_id IS NULL AND expires_at > clock_timestamp()").Exec(ctx)
	if err != nil {
		return fmt.Errorf("use quote %s: %w", intent.Quote.ID, err)
	}
	if used, err := result.RowsAffected(); err != nil || used == 1 {
		return err
	}
	known, err := find(ctx, tx, intent.AccountID, intent.Environment, intent.Quote.ID)
	switch {
	case err != nil:
		return err
	case known.TransferID != uuid.Nil:
		return &UsedError{known.TransferID}
	default:
		return ErrExpired
	}
}
