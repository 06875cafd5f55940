// Package registries stores the registry of chains and tokens.
package registries

import (
	"intents.internal/core/store/postgres"
)

// Store has the tables of core/intent/registry. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// New is the store of a database.
func New(db *postgres.DB) *Store { return &Store{db: db} }
