package identities

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// Rights are those with which a transaction writes. Only methods of Tx return them, and what is written for a session demands them: so
// nothing is written for a session that has ended, or for a member who was removed, while the request waited. The zero value allows
// nothing.
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
		return Rights{tx: tx.db.Tx, locked: []uuid.UUID{accountID}}, nil
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
	return rights.cover(tx, accountID)
}

// cover returns an error, which is a defect of the caller, unless the rights were read in this transaction and extend to the accounts.
func (r Rights) cover(tx Tx, accountIDs ...uuid.UUID) error {
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

// Rights reads the rights of a session to an account and keeps them as they are until the transaction ends: the rows of the session and
// the membership are locked FOR SHARE. The account, the person and the further accounts are locked before, in the order of their ids,
// which prevents deadlocks; whatever ends sessions or memberships locks accounts first too. It returns account.ErrSignedOut if the session or the person
// has ended, account.ErrNotMember if one of the other accounts has or the person is not a member, and the error of allows for the role.
func (tx Tx) Rights(
	ctx context.Context, session *account.Session, accountID uuid.UUID, allows func(account.Role) error, further ...uuid.UUID,
) (Rights, error) {
	r := Rights{tx: tx.db.Tx, locked: append([]uuid.UUID{accountID, session.AccountID}, further...)}
	var accounts []accountRow
	err := tx.db.NewSelect().Model(&accounts).Where("id IN (?)", bun.List(r.locked)).Where("deleted_at IS NULL AND disabled_at IS NULL").
		Order("id").For("NO KEY UPDATE").Scan(ctx)
	if err != nil {
		return Rights{}, fmt.Errorf("lock account %s: %w", accountID, err)
	}
	find := func(id uuid.UUID) int {
		return slices.IndexFunc(accounts, func(row accountRow) bool { return row.ID == id })
	}
	if find(session.AccountID) < 0 {
		return Rights{}, account.ErrSignedOut
	}
	for _, id := range r.locked {
		if find(id) < 0 {
			return Rights{}, account.ErrNotMember
		}
	}
	r.Person, r.Account = accounts[find(session.AccountID)].account(), accounts[find(accountID)].account()
	if err := tx.readRights(ctx, &r, session); err != nil {
		return Rights{}, err
	}
	if err := allows(r.Role); err != nil {
		return Rights{}, err
	}
	return r, nil
}

// readRights reads the session and the role, and locks both.
func (tx Tx) readRights(ctx context.Context, r *Rights, session *account.Session) error {
	var row struct {
		CreatedAt, ExpiresAt, ConfirmedAt time.Time
		Factor                            account.Factor
		HasPasskey                        bool
		Role                              account.Role
	}
	err := tx.db.NewRaw(`SELECT sessions.created_at, sessions.expires_at, coalesce(sessions.confirmed_at, sessions.created_at) AS confirmed_at,
		coalesce(sessions.factor, '') AS factor, `+hasPasskey+` AS has_passkey, members.role
		FROM sessions JOIN members ON members.person_id = sessions.account_id
		WHERE sessions.id = ? AND sessions.account_id = ? AND sessions.expires_at > clock_timestamp() AND members.account_id = ?
		FOR SHARE OF sessions, members`, session.ID, session.AccountID, r.Account.ID).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.noRights(ctx, session)
	}
	if err != nil {
		return fmt.Errorf("read the rights of session %s: %w", session.ID, err)
	}
	read := *session
	read.CreatedAt, read.ExpiresAt, read.ConfirmedAt = row.CreatedAt.UTC(), row.ExpiresAt.UTC(), row.ConfirmedAt.UTC()
	read.Factor, read.HasPasskey = row.Factor, row.HasPasskey
	r.Session, r.Role = &read, row.Role
	return nil
}

// noRights says whether the session or the membership is missing.
func (tx Tx) noRights(ctx context.Context, session *account.Session) error {
	live, err := tx.db.NewSelect().Model((*sessionRow)(nil)).
		Where("id = ? AND account_id = ? AND expires_at > clock_timestamp()", session.ID, session.AccountID).Exists(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("find session %s: %w", session.ID, err)
	case live:
		return account.ErrNotMember
	default:
		return account.ErrSignedOut
	}
}
