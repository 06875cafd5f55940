// Package retention removes what is kept for a time from the tables of all rooms, and the personal data of ended accounts.
package retention

import (
	"time"

	"intents.internal/core/postgres"
)

// Store removes rows. It is safe for concurrent use.
type Store struct {
	db      *postgres.DB
	pruning *pruneMetrics
}

// New is the store of a database.
func New(db *postgres.DB) *Store { return &Store{db: db, pruning: newPruneMetrics(db.Metrics)} }

// Now is the time by the database's clock, see postgres.DB.Now.
func (s *Store) Now() time.Time { return s.db.Now() }
