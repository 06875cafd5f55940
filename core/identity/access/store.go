// Package access is what a transaction of any room needs of an account: the rights with which it writes, the account's lock and turn, and
// the entry in the audit log, whose rows are the package's. It does not decide who may do what: package identity does.
package access

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// Store has the audit log. It is safe for concurrent use.
type Store struct{ db *postgres.DB }

// NewStore is the store of a database.
func NewStore(db *postgres.DB) *Store { return &Store{db} }

// Tx is a transaction that writes what belongs to an account.
type Tx struct{ db bun.Tx }

// Within gives the statements of this package to a transaction.
func Within(tx bun.Tx) Tx { return Tx{tx} }

// Bun is the transaction without the package's statements.
func (tx Tx) Bun() bun.Tx { return tx.db }

// LockAccount locks an account's row until the transaction ends, so that no other transaction adds rows that this one counts.
func (tx Tx) LockAccount(ctx context.Context, id uuid.UUID) error {
	if _, err := tx.db.NewRaw("SELECT FROM accounts WHERE id = ? FOR NO KEY UPDATE", id).Exec(ctx); err != nil {
		return fmt.Errorf("lock account %s: %w", id, err)
	}
	return nil
}

// TurnOfEmail is the turn of transactions that lock the account of an address before its id is known.
func TurnOfEmail(email string) postgres.Turn {
	return postgres.TurnOf(uuid.NewSHA1(uuid.NameSpaceURL, []byte("mailto:"+email)))
}
