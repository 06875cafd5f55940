package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// Rights are those with which a transaction writes. They are read in it, and what is written for a session demands them: so nothing is
// written for a session that has ended, or for a member who was removed, while the request waited. The zero value allows nothing.
type Rights struct {
	tx *sql.Tx
	// locked are the accounts to which the rights extend. An operator's extend to all.
	locked   []uuid.UUID
	operator bool

	// Session, Person, Account and Role are as the transaction has read them. They are nil and empty for a key and for an operator.
	Session *account.Session
	Person  *account.Account
	Account *account.Account
	Role    account.Role
}

// Granted are the rights to some accounts. Who grants them has locked what they rest on in the transaction.
func (tx Tx) Granted(accounts ...uuid.UUID) Rights { return Rights{tx: tx.db.Tx, locked: accounts} }

// Grant returns the rights of a write in its transaction. Methods that begin a transaction themselves take one.
type Grant struct {
	locks []uuid.UUID
	// Rights returns the rights, or the error that refuses the write.
	Rights func(context.Context, Tx) (Rights, error)
}

// NewGrant is a grant whose rights lock some accounts.
func NewGrant(rights func(context.Context, Tx) (Rights, error), locks ...uuid.UUID) Grant {
	return Grant{locks: locks, Rights: rights}
}

// Turn is that of the accounts that the grant locks, and of what else the transaction does.
func (g Grant) Turn(locks ...uuid.UUID) postgres.Turn {
	return postgres.TurnOf(g.locks...).And(locks...)
}

// OfKey grants the rights of an API key of an account, which a gateway has verified. It locks nothing.
func OfKey(accountID uuid.UUID) Grant {
	return NewGrant(func(_ context.Context, tx Tx) (Rights, error) {
		return tx.Granted(accountID), nil
	})
}

// OfOperator grants the rights of the command line. It locks nothing.
var OfOperator = NewGrant(func(_ context.Context, tx Tx) (Rights, error) { return tx.OperatorRights(), nil })

// OperatorRights are the rights of the command line.
func (tx Tx) OperatorRights() Rights { return Rights{tx: tx.db.Tx, operator: true} }

// Check asks for a grant, and checks that it extends to an account.
func (g Grant) Check(ctx context.Context, tx Tx, accountID uuid.UUID) error {
	rights, err := g.Rights(ctx, tx)
	if err != nil {
		return err
	}
	return rights.Cover(tx, accountID)
}

// Cover returns an error, which is a defect of the caller, unless the rights were read in this transaction and extend to the accounts.
func (r Rights) Cover(tx Tx, accountIDs ...uuid.UUID) error {
	if r.tx == nil || r.tx != tx.db.Tx {
		return errors.New("the rights are not of this transaction")
	}
	for _, id := range accountIDs {
		if !r.operator && !slices.Contains(r.locked, id) {
			return fmt.Errorf("the rights do not extend to account %s", id)
		}
	}
	return nil
}
