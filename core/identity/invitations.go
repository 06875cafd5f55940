package identity

import (
	"context"
	"errors"
	"fmt"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// InvitationPath is the page of an invitation, below the public URL. The token is in its query.
const InvitationPath = "/console/invitation"

// Invited is an invitation that was made.
type Invited struct {
	*account.Invitation
	// Link is for the inviter to pass on, if the service sends no mail. It is not stored, and anybody who has it can accept. It
	// is empty for a mailed invitation.
	Link string
}

// Invite invites an address to an account, and replaces an earlier invitation of it if again is set. It does the same whether or not the
// address has an account here. It returns an *account.InvalidError, account.ErrAlreadyMember, account.ErrAlreadyInvited,
// account.ErrTooManyMembers, ErrRole, ErrEmailNotVerified for a mail by a person with an unverified address, or a *LimitedError. It
// needs a fresh session or the client's password, as whoever is invited can give the person in this browser all that the role allows.
func (s *Members) Invite(ctx context.Context, client Client, p *Principal, email string, role account.Role, again bool) (*Invited, error) {
	now := s.Store.Now()
	invitation, err := account.NewInvitation(p.Account.ID, p.Person.ID, email, role, now)
	if err != nil {
		return nil, err
	}
	c := s.Change(client, p)
	if err := c.Confirm(ctx, roleEffect("", role, false)); err != nil {
		return nil, err
	}
	invitation.Mailed = s.MailQueued != nil
	if invitation.Mailed && !p.Person.EmailVerified() {
		return nil, ErrEmailNotVerified
	}
	if err := s.limitInvitation(ctx, client, invitation); err != nil {
		return nil, err
	}
	invitation.AccountName, invitation.InviterEmail = p.Account.Name, p.Person.Email
	invited := &Invited{Invitation: invitation}
	var tokenHash *[32]byte
	if !invitation.Mailed {
		token := account.NewLinkToken()
		hash := account.HashToken(token)
		tokenHash, invited.Link = &hash, invitationURL(s.PublicURL, token)
	}
	if err := c.storeInvitation(ctx, invitation, tokenHash, again); err != nil {
		return nil, err
	}
	return invited, nil
}

// limitInvitation counts an invitation to its account, its account and address, and, if it is mailed, as a mail that the client asks for.
func (s *Members) limitInvitation(ctx context.Context, client Client, invitation *account.Invitation) error {
	if err := s.limits.invitationsPerAccount.take(ctx, invitation.AccountID.String()); err != nil {
		return err
	}
	if err := s.limits.invitationsPerAddress.take(ctx, invitation.AccountID.String()+":"+digest(invitation.Email)); err != nil {
		return err
	}
	if !invitation.Mailed {
		return nil
	}
	return s.limitMail(ctx, client, invitation.Email)
}

func (c *Change) storeInvitation(ctx context.Context, invitation *account.Invitation, tokenHash *[32]byte, again bool) error {
	on := invitation.AccountID
	entry := c.service.entry(c.client, on, account.MemberInvited, fmt.Sprintf("%s as %s", invitation.Email, invitation.Role))
	if err := c.service.checkInvitation(ctx, invitation, again); err != nil {
		return err
	}
	return c.write(ctx, on, Manage, func(ctx context.Context, tx Tx) error {
		notice, err := c.Allow(roleEffect("", invitation.Role, false))
		if err != nil {
			return err
		}
		entry.Notice = notice
		roster, err := tx.Members(ctx, c.rights, on)
		if err != nil {
			return err
		}
		open, err := tx.Invitations(ctx, on, invitation.CreatedAt)
		if err != nil {
			return err
		}
		if err := invitable(invitation, roster, open, again); err != nil {
			return err
		}
		if err := tx.ReplaceInvitation(ctx, c.rights, invitation, tokenHash); err != nil {
			return err
		}
		if invitation.Mailed {
			m := mail.Draft{Kind: mail.KindInvitation, Recipient: invitation.Email, InvitationID: invitation.ID}
			if err := mail.Within(tx.db).Insert(ctx, m); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, entry)
	})
}

// checkInvitation returns what invitable does, without a wait for the account's lock.
func (s *base) checkInvitation(ctx context.Context, invitation *account.Invitation, again bool) error {
	roster, err := s.Store.Members(ctx, invitation.AccountID)
	if err != nil {
		return err
	}
	open, err := s.Store.Invitations(ctx, invitation.AccountID, invitation.CreatedAt)
	if err != nil {
		return err
	}
	return invitable(invitation, roster, open, again)
}

// invitable reports whether an invitation can be added to the members and open invitations of its account: account.ErrAlreadyMember,
// account.ErrAlreadyInvited unless it replaces, or account.ErrTooManyMembers.
func invitable(invitation *account.Invitation, roster account.Roster, open []*account.Invitation, again bool) error {
	for _, m := range roster {
		if m.Email == invitation.Email {
			return account.ErrAlreadyMember
		}
	}
	replaced := 0
	for _, other := range open {
		if other.Email == invitation.Email {
			replaced++
		}
	}
	switch {
	case replaced > 0 && !again:
		return account.ErrAlreadyInvited
	case len(roster)+len(open)-replaced >= account.MaxMembers:
		return account.ErrTooManyMembers
	}
	return nil
}

// Invitation finds the invitation of a link, or returns account.ErrNoInvitation. Attempts are limited.
func (s *base) Invitation(ctx context.Context, client Client, token string) (*account.Invitation, error) {
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	return s.Store.InvitationByToken(ctx, account.HashToken(token), s.Store.Now())
}

// AcceptInvitation makes the person of a session a member by the token of a link, and lets the session act on the account. It returns
// account.ErrNoInvitation, account.ErrNotInvited, account.ErrAlreadyMember, account.ErrTooManyMembers, or a *LimitedError.
func (s *Members) AcceptInvitation(ctx context.Context, client Client, p *Principal, token string) (*account.Invitation, account.Member, error) {
	c := s.Change(client, p)
	return c.answerInvitation(ctx, token, account.MemberJoined, func(ctx context.Context, tx Tx, roster account.Roster, m account.Member) error {
		if err := joinable(roster, m); err != nil {
			return err
		}
		if err := tx.InsertMember(ctx, c.rights, m); err != nil {
			return err
		}
		return tx.SetActing(ctx, c.rights, m.AccountID)
	})
}

// joinable reports whether a member can be added: account.ErrAlreadyMember or account.ErrTooManyMembers.
func joinable(roster account.Roster, m account.Member) error {
	if _, err := roster.Find(m.PersonID); err == nil {
		return account.ErrAlreadyMember
	}
	if len(roster) >= account.MaxMembers {
		return account.ErrTooManyMembers
	}
	return nil
}

// DeclineInvitation ends an invitation by the token of its link. It returns account.ErrNoInvitation, account.ErrNotInvited, or a
// *LimitedError.
func (s *Members) DeclineInvitation(ctx context.Context, client Client, p *Principal, token string) (*account.Invitation, error) {
	invitation, _, err := s.Change(client, p).answerInvitation(ctx, token, account.InvitationDeclined,
		func(context.Context, Tx, account.Roster, account.Member) error { return nil })
	return invitation, err
}

// answerInvitation uses an invitation and calls answer with the members of its account and the member that the person would be.
func (c *Change) answerInvitation(
	ctx context.Context, token string, action account.Action, answer func(context.Context, Tx, account.Roster, account.Member) error,
) (*account.Invitation, account.Member, error) {
	s, client, p := c.service, c.client, c.principal
	member := account.Member{PersonID: p.Person.ID, Name: p.Person.Name, Email: p.Person.Email, CreatedAt: s.Store.Now()}
	invitation, err := s.Invitation(ctx, client, token)
	if err != nil {
		return nil, member, err
	}
	if err := invitation.For(p.Person); err != nil {
		return nil, member, err
	}
	member.AccountID, member.Role = invitation.AccountID, invitation.Role
	if action == account.MemberJoined { // without a wait for the account's lock
		roster, err := s.Store.Members(ctx, member.AccountID)
		if err == nil {
			err = joinable(roster, member)
		}
		if err != nil {
			return invitation, member, err
		}
	}
	entry := s.entry(client, invitation.AccountID, action, fmt.Sprintf("%s as %s", invitation.Email, invitation.Role))
	if action == account.MemberJoined && invitation.Role == account.RoleOwner {
		entry.Notice = s.notice(account.NoticeToOwners)
	}
	err = c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		// The person gets the role that the invitation has, so that nothing is given here.
		if _, err := c.Allow(roleEffect(invitation.Role, member.Role, true)); err != nil {
			return err
		}
		roster, err := tx.Members(ctx, c.rights, invitation.AccountID)
		if err != nil {
			return err
		}
		// An invitation is worth what its inviter may do now.
		if inviter, err := roster.Find(invitation.InviterID); err != nil || (&Principal{Role: inviter.Role}).Check(Manage) != nil {
			return account.ErrNoInvitation
		}
		if err := tx.UseInvitation(ctx, c.rights, invitation.ID, account.HashToken(token), member.CreatedAt); err != nil {
			return err
		}
		if invitation.Mailed && !p.Person.EmailVerified() { // the token came by mail to the address
			if err := tx.VerifyEmail(ctx, p.Person, client.Actor(), member.CreatedAt); err != nil {
				return err
			}
		}
		if err := answer(ctx, tx, roster, member); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	}, invitation.AccountID, invitation.InviterID)
	if errors.Is(err, account.ErrNotMember) { // the account or the inviter has ended or is disabled
		err = account.ErrNoInvitation
	}
	return invitation, member, err
}

// CancelInvitation ends an open invitation to an account, or returns account.ErrNoInvitation or ErrRole.
func (s *Members) CancelInvitation(ctx context.Context, client Client, p *Principal, invitation *account.Invitation) error {
	entry := s.entry(client, p.Account.ID, account.InvitationCanceled, fmt.Sprintf("%s as %s", invitation.Email, invitation.Role))
	c := s.Change(client, p)
	return c.write(ctx, p.Account.ID, Manage, func(ctx context.Context, tx Tx) error {
		if err := tx.DeleteInvitation(ctx, c.rights, p.Account.ID, invitation.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

// composeInvitation writes the message of an invitation, or nil if it is gone. A link that was mailed before stops working.
func (s *Members) composeInvitation(ctx context.Context, queued *mail.Queued) (*mail.Message, error) {
	id, token, now := queued.InvitationID, account.NewLinkToken(), s.Store.Now()
	invitation, err := s.Store.InvitationByID(ctx, id, now)
	if err == nil {
		err = s.Store.SetInvitationToken(ctx, id, account.HashToken(token), now)
	}
	if errors.Is(err, account.ErrNoInvitation) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	link := s.mailLink(invitationURL(s.PublicURL, token))
	link.ValidFor = account.InvitationLifetime
	return mail.Write(invitation.Email, mail.Invitation, mail.InvitationLink{
		Link: link, Account: invitation.AccountName, Role: string(invitation.Role),
	})
}

// invitationURL is the link to the page of an invitation.
func invitationURL(publicURL, token string) string {
	return WithQuery(publicURL+InvitationPath, "token", token)
}
