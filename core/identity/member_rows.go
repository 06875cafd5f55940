package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

type memberRow struct {
	bun.BaseModel `bun:"table:members,alias:members"`

	AccountID uuid.UUID    `bun:"account_id,pk"`
	PersonID  uuid.UUID    `bun:"person_id,pk"`
	Role      account.Role `bun:"role"`
	CreatedAt time.Time    `bun:"created_at"`

	Account *accountRow `bun:"rel:belongs-to,join:account_id=id"`
	Person  *accountRow `bun:"rel:belongs-to,join:person_id=id"`
}

func (r memberRow) member() account.Member {
	return account.Member{
		AccountID: r.AccountID, PersonID: r.PersonID, Role: r.Role, CreatedAt: r.CreatedAt.UTC(), Name: r.Person.Name, Email: r.Person.Email,
		Disabled: r.Person.DisabledAt != nil,
	}
}

// usable is the condition for accounts that can be acted on.
const usable = `"account".deleted_at IS NULL AND "account".disabled_at IS NULL`

// Memberships lists the accounts that a person can act on: their own, then by name.
func (s *Store) Memberships(ctx context.Context, person uuid.UUID) ([]account.Membership, error) {
	var rows []memberRow
	err := s.db.NewSelect().Model(&rows).Relation("Account").Where("members.person_id = ?", person).Where(usable).
		OrderExpr(`members.account_id <> members.person_id, "account".name, members.account_id`).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the memberships of %s: %w", person, err)
	}
	memberships := make([]account.Membership, len(rows))
	for i, r := range rows {
		memberships[i] = account.Membership{Account: r.Account.account(), Role: r.Role}
	}
	return memberships, nil
}

// Membership finds an account that a person can act on, or returns account.ErrNotMember.
func (s *Store) Membership(ctx context.Context, accountID, person uuid.UUID) (*account.Membership, error) {
	var row memberRow
	err := s.db.NewSelect().Model(&row).Relation("Account").
		Where("members.account_id = ? AND members.person_id = ?", accountID, person).Where(usable).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotMember
	}
	if err != nil {
		return nil, fmt.Errorf("find the membership of %s in account %s: %w", person, accountID, err)
	}
	return &account.Membership{Account: row.Account.account(), Role: row.Role}, nil
}

// Members lists the members of an account, the first member first.
func (s *Store) Members(ctx context.Context, accountID uuid.UUID) (account.Roster, error) {
	return members(ctx, s.db, accountID)
}

func members(ctx context.Context, db bun.IDB, accountID uuid.UUID) (account.Roster, error) {
	var rows []memberRow
	err := db.NewSelect().Model(&rows).Relation("Person").Where("members.account_id = ?", accountID).
		OrderExpr("members.account_id <> members.person_id, members.created_at, members.person_id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the members of account %s: %w", accountID, err)
	}
	roster := make(account.Roster, len(rows))
	for i, r := range rows {
		roster[i] = r.member()
	}
	return roster, nil
}

// Members lists the members of an account that the rights have locked: whatever changes members locks the account first.
func (tx Tx) Members(ctx context.Context, by access.Rights, accountID uuid.UUID) (account.Roster, error) {
	if err := by.Cover(tx.Tx, accountID); err != nil {
		return nil, err
	}
	return members(ctx, tx.db, accountID)
}

// InsertMember stores a new member.
func (tx Tx) InsertMember(ctx context.Context, by access.Rights, m account.Member) error {
	if err := by.Cover(tx.Tx, m.AccountID, m.PersonID); err != nil {
		return err
	}
	return tx.insertMember(ctx, m)
}

func (tx Tx) insertMember(ctx context.Context, m account.Member) error {
	row := memberRow{AccountID: m.AccountID, PersonID: m.PersonID, Role: m.Role, CreatedAt: m.CreatedAt}
	_, err := tx.db.NewInsert().Model(&row).Exec(ctx)
	if postgres.BrokenConstraint(err) == "members_pkey" {
		return account.ErrAlreadyMember
	}
	if err != nil {
		return fmt.Errorf("insert a member of account %s: %w", m.AccountID, err)
	}
	return nil
}

// ChangeMember stores another role of a member. The member's open invitations end.
func (tx Tx) ChangeMember(ctx context.Context, by access.Rights, m account.Member) error {
	if err := by.Cover(tx.Tx, m.AccountID); err != nil {
		return err
	}
	_, err := tx.db.NewRaw("UPDATE members SET role = ? WHERE account_id = ? AND person_id = ?", m.Role, m.AccountID, m.PersonID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("change a member of account %s: %w", m.AccountID, err)
	}
	return tx.endInvitationsBy(ctx, m)
}

// DeleteMember ends a membership, the member's open invitations and the member's sessions that act on the account. The session
// keep is kept and acts on the person's own account; uuid.Nil keeps none.
func (tx Tx) DeleteMember(ctx context.Context, by access.Rights, m account.Member, keep uuid.UUID) error {
	if err := by.Cover(tx.Tx, m.AccountID); err != nil {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM members WHERE account_id = ?0 AND person_id = ?1",
		"UPDATE sessions SET acting_account_id = NULL WHERE account_id = ?1 AND acting_account_id = ?0 AND id = ?2",
		"DELETE FROM sessions WHERE account_id = ?1 AND acting_account_id = ?0",
	} {
		if _, err := tx.db.NewRaw(statement, m.AccountID, m.PersonID, keep).Exec(ctx); err != nil {
			return fmt.Errorf("end a membership of account %s: %w", m.AccountID, err)
		}
	}
	return tx.endInvitationsBy(ctx, m)
}

// SetActing makes the session of the rights act on an account in which the person is a member, or on the person's own. It returns
// account.ErrNotMember. The rights have locked the account, so that a concurrent end of it either ends the session or prevents this,
// unless the transaction has made it.
func (tx Tx) SetActing(ctx context.Context, by access.Rights, accountID uuid.UUID) error {
	if err := by.Cover(tx.Tx); err != nil {
		return err
	}
	changed, err := postgres.RowsChanged(tx.db.NewRaw(`UPDATE sessions SET acting_account_id = nullif(?0::uuid, account_id)
		WHERE id = ?1 AND EXISTS (SELECT FROM members JOIN accounts ON accounts.id = members.account_id
			WHERE members.account_id = ?0 AND person_id = sessions.account_id AND deleted_at IS NULL AND disabled_at IS NULL)`,
		accountID, by.Session.ID).Exec(ctx))
	if err != nil {
		return fmt.Errorf("let a session act on account %s: %w", accountID, err)
	}
	if changed == 0 {
		return account.ErrNotMember
	}
	return nil
}

// SharedWithoutOwner lists the shared accounts of a disabled person that have no other owner who could act, by name.
func (s *Store) SharedWithoutOwner(ctx context.Context, email string) ([]*account.Account, error) {
	var rows []memberRow
	err := s.db.NewSelect().Model(&rows).Relation("Account").Relation("Person").
		Where(`"person".email = ? AND "person".deleted_at IS NULL AND "person".disabled_at IS NOT NULL`, email).
		Where(`members.role = 'owner' AND "account".shared AND "account".deleted_at IS NULL AND NOT ` + otherOwner).
		OrderExpr(`"account".name, members.account_id`).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the shared accounts without an owner: %w", err)
	}
	shared := make([]*account.Account, len(rows))
	for i, r := range rows {
		shared[i] = r.Account.account()
	}
	return shared, nil
}

// otherOwner is the condition for a membership whose account has another owner who is not disabled.
const otherOwner = `EXISTS (SELECT FROM members AS others JOIN accounts AS owners ON owners.id = others.person_id
	WHERE others.account_id = members.account_id AND others.person_id <> members.person_id AND others.role = 'owner'
		AND owners.disabled_at IS NULL AND owners.deleted_at IS NULL)`

// RenameAccount stores the name of an account.
func (tx Tx) RenameAccount(ctx context.Context, by access.Rights, a *account.Account, now time.Time) error {
	if err := by.Cover(tx.Tx, a.ID); err != nil {
		return err
	}
	_, err := tx.db.NewRaw("UPDATE accounts SET name = ?, updated_at = ? WHERE id = ?", a.Name, now, a.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("rename account %s: %w", a.ID, err)
	}
	return nil
}

// InsertSharedAccount stores an account without a sign-in, whose first owner is a person that the rights have locked. It returns
// account.ErrTooManyShared.
func (tx Tx) InsertSharedAccount(ctx context.Context, by access.Rights, a *account.Account, owner uuid.UUID) error {
	if err := by.Cover(tx.Tx, owner); err != nil {
		return err
	}
	var owned int
	err := tx.db.NewRaw(`SELECT count(*) FROM members JOIN accounts ON accounts.id = account_id
		WHERE person_id = ? AND role = 'owner' AND shared`, owner).Scan(ctx, &owned)
	if err != nil {
		return fmt.Errorf("count the shared accounts of %s: %w", owner, err)
	}
	if owned >= account.MaxSharedAccounts {
		return account.ErrTooManyShared
	}
	if err := tx.insertAccount(ctx, a); err != nil {
		return err
	}
	return tx.insertMember(ctx, account.Member{AccountID: a.ID, PersonID: owner, Role: account.RoleOwner, CreatedAt: a.CreatedAt})
}
