package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
)

// Act makes a session act on another account of its person. It returns account.ErrNotMember.
func (s *Members) Act(ctx context.Context, client Client, p *Principal, accountID uuid.UUID) error {
	c := s.Change(client, p)
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		if err := tx.SetActing(ctx, c.rights, accountID); err != nil || accountID == p.Session.ActingID() {
			return err
		}
		return tx.Audit(ctx, account.NewHourlyEntry(accountID, accountID.String(), client.Actor(), account.AccountSwitched, s.Store.Now()))
	}, accountID)
}

// ChangeRole changes the role of a member. A role that allows more, and one that takes something from another person, needs a fresh
// session or the client's password. It returns the errors of a confirmation, account.ErrNoSuchMember, account.ErrHolder,
// account.ErrLastOwner, and ErrRole for a person who is no longer an owner.
func (s *Members) ChangeRole(ctx context.Context, client Client, p *Principal, person uuid.UUID, role account.Role) (account.Member, error) {
	return s.changeMember(ctx, client, p, person, account.MemberChanged, role)
}

// Remove ends the membership of another person, and all of that person's sessions that act on the account. It needs a fresh
// session or the client's password, and returns what ChangeRole returns. Persons remove themselves with Leave.
func (s *Members) Remove(ctx context.Context, client Client, p *Principal, person uuid.UUID) (account.Member, error) {
	if person == p.Person.ID {
		return s.Leave(ctx, client, p)
	}
	return s.changeMember(ctx, client, p, person, account.MemberRemoved, "")
}

// changeMember gives a member another role, none to remove the member. The person must be an owner under the lock: if two owners remove
// each other, the second call fails.
func (s *Members) changeMember(
	ctx context.Context, client Client, p *Principal, person uuid.UUID, action account.Action, role account.Role,
) (member account.Member, err error) {
	c := s.Change(client, p)
	err = c.write(ctx, p.Account.ID, Manage, func(ctx context.Context, tx Tx) error {
		roster, err := tx.Members(ctx, c.rights, p.Account.ID)
		if err != nil {
			return err
		}
		if member, err = roster.Find(person); err != nil {
			return err
		}
		entry := s.entry(client, p.Account.ID, action, fmt.Sprintf("%s, was %s", member.Email, member.Role))
		if role != "" {
			entry.Detail = fmt.Sprintf("%s: %s, was %s", member.Email, role, member.Role)
		}
		decided := roleEffect(member.Role, role, person == p.Person.ID)
		if entry.Notice, err = c.Allow(decided); err != nil {
			return err
		}
		if decided == takesRole { // an owner who is one no longer is told too
			if err := tx.Audit(ctx, entry); err != nil {
				return err
			}
		}
		if err := applyRole(ctx, tx, c.rights, roster, &member, role); err != nil || decided == takesRole {
			return err
		}
		return tx.Audit(ctx, entry)
	})
	return member, err
}

// applyRole stores a member's role, or removes the member if it is empty.
func applyRole(ctx context.Context, tx Tx, by access.Rights, roster account.Roster, m *account.Member, role account.Role) error {
	if role == "" || m.Role == account.RoleOwner && role != account.RoleOwner {
		if err := roster.CanLose(*m); err != nil {
			return err
		}
	}
	if role == "" {
		return tx.DeleteMember(ctx, by, *m, uuid.Nil)
	}
	m.Role = role
	return tx.ChangeMember(ctx, by, *m)
}

// Leave ends the person's own membership of an account, and all sessions of the person that act on it except the current one,
// which then acts on the person's own account. It returns account.ErrHolder or account.ErrLastOwner.
func (s *Members) Leave(ctx context.Context, client Client, p *Principal) (member account.Member, err error) {
	entry := s.entry(client, p.Account.ID, account.MemberLeft, "")
	c := s.Change(client, p)
	err = c.write(ctx, p.Account.ID, Person, func(ctx context.Context, tx Tx) error {
		roster, err := tx.Members(ctx, c.rights, p.Account.ID)
		if err != nil {
			return err
		}
		if member, err = roster.Find(p.Person.ID); err != nil {
			return account.ErrNotMember
		}
		if err := roster.CanLose(member); err != nil {
			return err
		}
		if err := tx.DeleteMember(ctx, c.rights, member, p.Session.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
	return member, err
}
