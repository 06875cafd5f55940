package registry

import (
	"intents.internal/core/postgres"
)

// Store has the rows of the package. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db: db} }
