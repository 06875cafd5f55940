package quotes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// Store has the table of core/quotes. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	intents *intents.Store
}

// NewStore is the store of a database, with that of the intents that quotes make.
func NewStore(db *postgres.DB, of *intents.Store) *Store { return &Store{db: db, intents: of} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// maxUnused is how many unused quotes of an account are kept; further ones take the places of its oldest.
const maxUnused = 10_000

// Insert stores quotes of one account. Over maxUnused it removes the account's oldest that were not used, and no other's.
func (s *Store) Insert(ctx context.Context, grant access.Grant, quotes []quote.Quote) error {
	if len(quotes) == 0 {
		return nil
	}
	rows := make([]row, len(quotes))
	for n, q := range quotes {
		rows[n] = newRow(q)
	}
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	return s.db.InTx(ctx, grant.Turn(), func(ctx context.Context, tx bun.Tx) error {
		if err := grant.Check(ctx, access.Within(tx), quotes[0].AccountID); err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
			return fmt.Errorf("insert %d quotes: %w", len(rows), err)
		}
		return removeOldest(ctx, tx, quotes[0].AccountID)
	})
}

// removeOldest removes the unused quotes of an account beyond maxUnused: ids are in the order of time.
func removeOldest(ctx context.Context, tx bun.Tx, accountID uuid.UUID) error {
	_, err := tx.NewRaw(`DELETE FROM quotes WHERE account_id = ?0 AND transfer_id IS NULL AND id <= (
		SELECT id FROM quotes WHERE account_id = ?0 AND transfer_id IS NULL ORDER BY id DESC OFFSET ?1 LIMIT 1)`, accountID, maxUnused).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove the oldest unused quotes of account %s: %w", accountID, err)
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

// Use stores the intent that a quote makes, with its first event, and sets the intent's times, all in the transaction that marks the quote as
// used. It returns a *UsedError, ErrExpired or ErrNotFound if the quote cannot be used, and postgres.ErrKeyReused for an idempotency key that the
// account has used before in this environment; nothing is written then. After an OutcomeUnknownError the intent may be stored.
func (s *Store) Use(ctx context.Context, grant access.Grant, intent *transfer.Intent, idempotencyKey string) error {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err := s.db.InTx(ctx, grant.Turn(intent.Quote.ID), func(ctx context.Context, tx bun.Tx) error {
		if err := grant.Check(ctx, access.Within(tx), intent.AccountID); err != nil {
			return err
		}
		expiresAt, err := markUsed(ctx, tx, intent)
		if err != nil {
			return err
		}
		inserted, err := intents.Within(tx).InsertTransfer(ctx, intent, idempotencyKey)
		switch {
		case err != nil:
			return err
		case !inserted:
			return postgres.ErrKeyReused // by an intent of another quote or of none
		case !intent.CreatedAt.Before(expiresAt): // an unchanged row is not compared again after the wait for it
			return ErrExpired
		default:
			return nil
		}
	})
	switch {
	case err == nil:
		s.intents.CountTransitions([]transfer.Event{{To: transfer.Created}})
		return nil
	case postgres.IsOutcomeUnknown(err):
		return &postgres.OutcomeUnknownError{Err: err, Repeatable: true} // the quote makes no second intent
	default:
		return err
	}
}

// markUsed lets one transaction win: the others wait for the row and then find it used. It returns the quote's end.
func markUsed(ctx context.Context, tx bun.Tx, intent *transfer.Intent) (expiresAt time.Time, err error) {
	var marked []time.Time
	err = tx.NewUpdate().Model((*row)(nil)).Set("transfer_id = ?", intent.ID).
		Where("account_id = ? AND id = ? AND environment = ?", intent.AccountID, intent.Quote.ID, intent.Environment).
		Where("transfer_id IS NULL AND expires_at > clock_timestamp()").Returning("expires_at").Scan(ctx, &marked)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("use quote %s: %w", intent.Quote.ID, err)
	case len(marked) == 1:
		return marked[0], nil
	}
	known, err := find(ctx, tx, intent.AccountID, intent.Environment, intent.Quote.ID)
	switch {
	case err != nil:
		return time.Time{}, err
	case known.TransferID != uuid.Nil:
		return time.Time{}, &UsedError{known.TransferID}
	default:
		return time.Time{}, ErrExpired
	}
}
