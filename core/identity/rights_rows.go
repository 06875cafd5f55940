package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
)

// Rights reads the rights of a session to an account and keeps them as they are until the transaction ends: the rows of the session and
// the membership are locked FOR SHARE. The account, the person and the further accounts are locked before, in the order of their ids,
// which prevents deadlocks; whatever ends sessions or memberships locks accounts first too. It returns account.ErrSignedOut if the session or the person
// has ended, account.ErrNotMember if one of the other accounts has or the person is not a member, and the error of allows for the role.
func (tx Tx) Rights(
	ctx context.Context, session *account.Session, accountID uuid.UUID, allows func(account.Role) error, further ...uuid.UUID,
) (access.Rights, error) {
	locked := append([]uuid.UUID{accountID, session.AccountID}, further...)
	r := tx.Granted(locked...)
	var accounts []accountRow
	err := tx.db.NewSelect().Model(&accounts).Where("id IN (?)", bun.List(locked)).Where("deleted_at IS NULL AND disabled_at IS NULL").
		Order("id").For("NO KEY UPDATE").Scan(ctx)
	if err != nil {
		return access.Rights{}, fmt.Errorf("lock account %s: %w", accountID, err)
	}
	find := func(id uuid.UUID) int {
		return slices.IndexFunc(accounts, func(row accountRow) bool { return row.ID == id })
	}
	if find(session.AccountID) < 0 {
		return access.Rights{}, account.ErrSignedOut
	}
	for _, id := range locked {
		if find(id) < 0 {
			return access.Rights{}, account.ErrNotMember
		}
	}
	r.Person, r.Account = accounts[find(session.AccountID)].account(), accounts[find(accountID)].account()
	if err := tx.readRights(ctx, &r, session); err != nil {
		return access.Rights{}, err
	}
	if err := allows(r.Role); err != nil {
		return access.Rights{}, err
	}
	return r, nil
}

// readRights reads the session and the role, and locks both.
func (tx Tx) readRights(ctx context.Context, r *access.Rights, session *account.Session) error {
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
