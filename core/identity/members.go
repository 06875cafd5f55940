package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/store/identities"
)

// Act makes a session act on another account of its person. It returns account.ErrNotMember.
func (s *Service) Act(ctx context.Context, client Client, p *Principal, accountID uuid.UUID) error {
	return s.Store.InTx(ctx, func(ctx context.Context, tx identities.Tx) error {
		if err := tx.SetActing(ctx, p.Session, accountID); err != nil || accountID == p.Session.ActingID() {
			return err
		}
		return tx.AuditHourly(ctx, accountID, account.NewHourlyEntry(accountID.String(), client.Actor(), account.AccountSwitched, s.Store.Now()))
	})
}

// ChangeMember changes the role of a member. Making an owner needs a fresh session or the client's password. It returns
// ErrSessionNotFresh, ErrPassword, ErrBusy, a *LimitedError, account.ErrNoSuchMember, account.ErrHolder, account.ErrLastOwner, and
// ErrRole for a person who is no longer an owner.
func (s *Service) ChangeMember(ctx context.Context, client Client, p *Principal, person uuid.UUID, role account.Role) (account.Member, error) {
	if role == account.RoleOwner {
		if err := s.confirm(ctx, client, p); err != nil {
			return account.Member{}, err
		}
	}
	return s.changeMembers(ctx, client, p, person, account.MemberChanged, func(ctx context.Context, tx identities.Tx, roster account.Roster, m *account.Member) (string, error) {
		if m.Role == account.RoleOwner && role != account.RoleOwner {
			if err := roster.CanLose(*m); err != nil {
				return "", err
			}
		}
		detail := fmt.Sprintf("%s: %s, was %s", m.Email, role, m.Role)
		m.Role = role
		return detail, tx.ChangeMember(ctx, *m)
	})
}

// RemoveMember ends the membership of another person, and all of that person's sessions that act on the account. It needs a fresh
// session or the client's password, and returns what ChangeMember returns. Persons remove themselves with Leave.
func (s *Service) RemoveMember(ctx context.Context, client Client, p *Principal, person uuid.UUID) (account.Member, error) {
	if person == p.Person.ID {
		return s.Leave(ctx, client, p)
	}
	if err := s.confirm(ctx, client, p); err != nil {
		return account.Member{}, err
	}
	return s.changeMembers(ctx, client, p, person, account.MemberRemoved, func(ctx context.Context, tx identities.Tx, roster account.Roster, m *account.Member) (string, error) {
		if err := roster.CanLose(*m); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, was %s", m.Email, m.Role), tx.DeleteMember(ctx, *m, uuid.Nil)
	})
}

// changeMembers calls change with a member of a locked account, and writes the returned text to the audit log. The person must be
// an owner under the lock: if two owners remove each other, the second call fails.
func (s *Service) changeMembers(
	ctx context.Context, client Client, p *Principal, person uuid.UUID, action account.Action,
	change func(context.Context, identities.Tx, account.Roster, *account.Member) (detail string, err error),
) (member account.Member, err error) {
	entry := s.entry(client, p.Account.ID, action, "")
	err = s.Store.InTx(ctx, func(ctx context.Context, tx identities.Tx) error {
		roster, err := s.lockManaged(ctx, tx, p)
		if err != nil {
			return err
		}
		if member, err = roster.Find(person); err != nil {
			return err
		}
		was := member.Role
		if entry.Detail, err = change(ctx, tx, roster, &member); err != nil {
			return err
		}
		if member.Role == account.RoleOwner && was != account.RoleOwner {
			entry.Notice = s.notice(account.NoticeToOwners)
		}
		return tx.Audit(ctx, entry)
	})
	if err == nil {
		s.noticesQueued()
	}
	return member, err
}

// lockManaged locks the members of an account and the person until the transaction ends. It returns ErrRole for a person who may no
// longer manage them, and ErrSignedOut if the session has ended: its end may also have ended the person's invitations, and none
// may be added after that.
func (s *Service) lockManaged(ctx context.Context, tx identities.Tx, p *Principal) (account.Roster, error) {
	roster, err := tx.LockMembers(ctx, p.Account.ID, p.Person.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.CheckSession(ctx, p.Session, s.Store.Now()); errors.Is(err, account.ErrNotFound) {
		return nil, ErrSignedOut
	} else if err != nil {
		return nil, err
	}
	me, err := roster.Find(p.Person.ID)
	if err != nil {
		return nil, account.ErrNotMember
	}
	return roster, (&Principal{Role: me.Role}).Check(Manage)
}

// Leave ends the person's own membership of an account, and all sessions of the person that act on it except the current one,
// which then acts on the person's own account. It returns account.ErrHolder or account.ErrLastOwner.
func (s *Service) Leave(ctx context.Context, client Client, p *Principal) (member account.Member, err error) {
	entry := s.entry(client, p.Account.ID, account.MemberLeft, "")
	err = s.Store.InTx(ctx, func(ctx context.Context, tx identities.Tx) error {
		roster, err := tx.LockMembers(ctx, p.Account.ID)
		if err != nil {
			return err
		}
		if member, err = roster.Find(p.Person.ID); err != nil {
			return account.ErrNotMember
		}
		if err := roster.CanLose(member); err != nil {
			return err
		}
		if err := tx.DeleteMember(ctx, member, p.Session.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
	return member, err
}
