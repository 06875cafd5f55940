package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// A mailed invitation needs its address and its token, and says the same to every inviter. Names are inert in it.
func TestInvite_Mailed(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann, bob, eve := signedIn(t, core.Service, "ann@example.com"), signedIn(t, core.Service, "bob@example.com"), signedIn(t, core.Service, "eve@example.com")
	carol := signedIn(t, core.Service, "carol@example.com")
	pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now() WHERE email = 'ann@example.com'`)
	shop := ann.shares("Shop\r\nBcc: eve@example.com <b>http://evil.example/?x=1</b>")
	if token := ann.invites("bob@example.com", account.RoleViewer); token != "" {
		t.Errorf("the inviter is shown the token %q", token)
	}
	mailed := <-core.mails
	equal(t, "mailed to", mailed.To, []string{"bob@example.com"})
	says(t, string(mailed.Data), []string{"Shop Bcc eve example com"}, []string{"evil.example", "<b>", "eve@example.com", "ann@example.com"})
	token := invitationToken(t, mailed.Link())
	is(t, "another person with the token", eve.accepts(token), account.ErrNotInvited)
	is(t, "declined by another person", call(core.Members.DeclineInvitation(t.Context(), eve.client, eve.principal(), token)), account.ErrNotInvited)
	is(t, "invited twice", call(core.Members.Invite(t.Context(), ann.client, ann.principal(), "BOB@example.com", account.RoleOwner, false)), account.ErrAlreadyInvited)
	invite := func(email string, role account.Role) (token string) {
		ann.invites(email, role)
		return invitationToken(t, (<-core.mails).Link())
	}
	again := invite("bob@example.com", account.RoleDeveloper)
	is(t, "the link before", bob.accepts(token), account.ErrNoInvitation)
	is(t, "declined", call(core.Members.DeclineInvitation(t.Context(), bob.client, bob.principal(), again)), nil)
	is(t, "declined, then accepted", bob.accepts(again), account.ErrNoInvitation)

	token = invite("bob@example.com", account.RoleViewer)
	pgtest.Exec(t, core.Store, `UPDATE invitations SET expires_at = now() - interval '1 s'`)
	is(t, "expired", bob.accepts(token), account.ErrNoInvitation)
	token = invite("carol@example.com", account.RoleViewer)
	open := must(core.Store.Invitations(t.Context(), shop, time.Now()))(t)
	if len(open) != 1 || open[0].Email != "carol@example.com" {
		t.Fatalf("%d invitations are open", len(open))
	}
	is(t, "canceled", core.Members.CancelInvitation(t.Context(), ann.client, ann.principal(), open[0]), nil)
	is(t, "canceled, then accepted", carol.accepts(token), account.ErrNoInvitation)
	token = invite("carol@example.com", account.RoleViewer)
	is(t, "accepted", carol.accepts(token), nil)
	if !carol.principal().Person.EmailVerified() || eve.principal().Person.EmailVerified() {
		t.Error("the address of the person who uses a mailed token is verified, and no other")
	}
	for range 3 {
		is(t, "a member", call(core.Members.Invite(t.Context(), ann.client, ann.principal(), "carol@example.com", account.RoleOwner, true)), account.ErrAlreadyMember)
	}
	isLimited(t, "an address", call(core.Members.Invite(t.Context(), ann.client, ann.principal(), "carol@example.com", account.RoleOwner, true)), true)
}

// An invitation by mail is a mail that its inviter asks for: it needs a verified address, and counts for the inviter's network and for
// the invited address there. What one account sends to an address, no other account lacks.
func TestInvite_MailLimits(t *testing.T) {
	t.Parallel()
	core := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress, c.Limits.MailsPerIP = 3, 5 })
	ann, bob := signedIn(t, core.Service, "ann@example.com"), signedIn(t, core.Service, "bob@example.com")
	ann.shares("Shop")
	invite := func(p somebody, email string) error {
		return call(core.Members.Invite(t.Context(), p.client, p.principal(), email, account.RoleViewer, true))
	}
	is(t, "an unverified inviter", invite(ann, "x@example.com"), identity.ErrEmailNotVerified)
	if to := core.settle(t); len(to) > 0 {
		t.Errorf("mails went to %q", to)
	}
	pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now()`)
	for n := range 4 {
		_, limited := errors.AsType[*identity.LimitedError](invite(ann, "x@example.com"))
		if limited != (n == 3) {
			t.Errorf("invitation %d of the address is limited: %t", n, limited)
		}
	}
	bob.client.IP = "198.51.100.1"
	is(t, "another account elsewhere", invite(bob, "x@example.com"), nil)
	is(t, "another address", invite(ann, "y@example.com"), nil)
	if _, limited := errors.AsType[*identity.LimitedError](invite(ann, "z@example.com")); !limited {
		t.Error("invitations do not count for the inviter's network")
	}
}

// What ends the authority of an inviter ends the invitations that the inviter made to the accounts of others, whatever it is.
func TestInvitation_InviterEnds(t *testing.T) {
	t.Parallel()
	operator := account.Actor{Operator: true}
	for name, end := range map[string]func(ann, bob somebody) error{
		"disabled": func(_, bob somebody) error {
			return bob.core.Store.DisableAccount(bob.t.Context(), bob.client.UserAgent, operator, time.Now())
		},
		"disabled and enabled again": func(_, bob somebody) error {
			if err := bob.core.Store.DisableAccount(bob.t.Context(), bob.client.UserAgent, operator, time.Now()); err != nil {
				return err
			}
			return bob.core.Store.EnableAccount(bob.t.Context(), bob.client.UserAgent, operator, time.Now())
		},
		"reset by an operator": func(_, bob somebody) error {
			return bob.core.Store.SetPassword(bob.t.Context(), bob.client.UserAgent, "hash", operator, time.Now())
		},
		"reset by a link": func(_, bob somebody) error {
			token, entry := account.NewLinkToken(), account.AuditEntry{AccountID: bob.id, Action: account.ResetLinkMade, ID: uuid.New(), OccurredAt: time.Now()}
			err := bob.core.Store.InsertResetToken(bob.t.Context(), bob.principal().Person, account.HashToken(token), time.Now().Add(time.Hour), &entry)
			if err != nil {
				return err
			}
			return call(bob.core.Persons.ResetPassword(bob.t.Context(), bob.client, identity.ResetRequest{Token: token, NewPassword: newPassword}))
		},
		"another password": func(_, bob somebody) error {
			return call(bob.core.Persons.ChangePassword(bob.t.Context(), bob.client, bob.principal(), password, newPassword))
		},
		"removed": func(ann, bob somebody) error {
			return call(ann.core.Members.Remove(bob.t.Context(), ann.client, ann.principal(), bob.id))
		},
		"gone": func(_, bob somebody) error {
			return bob.core.Store.DeleteAccount(bob.t.Context(), bob.client.UserAgent, operator, time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newService(t, withPasswords(t))
			ann, bob, eve := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com"), signedIn(t, core, "eve@example.com")
			shop := ann.shares("Shop")
			is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleOwner)), nil)
			kept, ended := ann.invites("carol@example.com", account.RoleViewer), bob.invites("eve@example.com", account.RoleOwner)
			ok(t, end(ann, bob))
			open, err := core.Store.Invitations(t.Context(), shop, time.Now())
			if err != nil || len(open) != 1 || open[0].InviterID != ann.id {
				t.Errorf("%d invitations are open, want ann's: %v", len(open), err)
			}
			is(t, "bob's invitation", eve.accepts(ended), account.ErrNoInvitation)
			is(t, "ann's invitation", eve.accepts(kept), nil)
		})
	}
}

// Whether the inviter may still manage the account is decided when the invitation is accepted, under the lock of the members.
func TestInvitation_InviterMayNotManage(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"disabled":     `UPDATE accounts SET disabled_at = now() WHERE id = $1`,
		"no owner":     `UPDATE members SET role = 'developer' WHERE person_id = $1 AND account_id <> person_id`,
		"not a member": `DELETE FROM members WHERE person_id = $1 AND account_id <> person_id`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newService(t, withPasswords(t))
			ann, bob, eve := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com"), signedIn(t, core, "eve@example.com")
			ann.shares("Shop")
			is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleOwner)), nil)
			token := bob.invites("eve@example.com", account.RoleOwner)
			pgtest.Exec(t, core.Store, statement, bob.id)
			is(t, "accepted", eve.accepts(token), account.ErrNoInvitation)
			if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM members WHERE person_id = $1`, eve.id); n != 1 {
				t.Errorf("eve is a member of %d accounts, want her own", n)
			}
		})
	}
}
