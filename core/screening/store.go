package screening

import (
	"context"
	"time"

	"intents.internal/core/postgres"
)

// Store has the tables of core/screening. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }

// timeout bounds a statement, for a database that does not respond.
func (s *Store) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.db.ClientTimeout())
}
