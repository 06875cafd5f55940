package identity_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
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
	if diff := cmp.Diff([]string{"bob@example.com"}, mailed.To); diff != "" {
		t.Errorf("mailed to (-want +got):\n%s", diff)
	}
	for _, never := range []string{"evil.example", "<b>", "eve@example.com", "ann@example.com"} {
		if strings.Contains(string(mailed.Data), never) {
			t.Errorf("the mail has %q:\n%s", never, mailed.Data)
		}
	}
	if !strings.Contains(string(mailed.Data), "Shop Bcc eve example com") {
		t.Errorf("the mail does not name the account:\n%s", mailed.Data)
	}
	token := invitationToken(t, mailed.Link())
	is(t, "another person with the token", eve.accepts(token), account.ErrNotInvited)
	is(t, "declined by another person", call(core.DeclineInvitation(t.Context(), eve.client, eve.principal(), token)), account.ErrNotInvited)
	is(t, "invited twice", call(core.Invite(t.Context(), ann.client, ann.principal(), "BOB@example.com", account.RoleOwner, false)), account.ErrAlreadyInvited)
	ann.invites("bob@example.com", account.RoleDeveloper)
	again := invitationToken(t, (<-core.mails).Link())
	is(t, "the link before", bob.accepts(token), account.ErrNoInvitation)
	is(t, "declined", call(core.DeclineInvitation(t.Context(), bob.client, bob.principal(), again)), nil)
	is(t, "declined, then accepted", bob.accepts(again), account.ErrNoInvitation)

	ann.invites("bob@example.com", account.RoleViewer)
	token = invitationToken(t, (<-core.mails).Link())
	pgtest.Exec(t, core.Store, `UPDATE invitations SET expires_at = now() - interval '1 s'`)
	is(t, "expired", bob.accepts(token), account.ErrNoInvitation)
	ann.invites("carol@example.com", account.RoleViewer)
	token = invitationToken(t, (<-core.mails).Link())
	open, err := core.Store.Invitations(t.Context(), shop, time.Now())
	is(t, "the list", err, nil)
	if len(open) != 1 || open[0].Email != "carol@example.com" {
		t.Fatalf("%d invitations are open", len(open))
	}
	is(t, "canceled", core.CancelInvitation(t.Context(), ann.client, ann.principal(), open[0]), nil)
	is(t, "canceled, then accepted", carol.accepts(token), account.ErrNoInvitation)
	ann.invites("carol@example.com", account.RoleViewer)
	token = invitationToken(t, (<-core.mails).Link())
	is(t, "accepted", carol.accepts(token), nil)
	if !carol.principal().Person.EmailVerified() || eve.principal().Person.EmailVerified() {
		t.Error("the address of the person who uses a mailed token is verified, and no other")
	}
	for range 3 {
		is(t, "a member", call(core.Invite(t.Context(), ann.client, ann.principal(), "carol@example.com", account.RoleOwner, true)), account.ErrAlreadyMember)
	}
	limited, _ := errors.AsType[*identity.LimitedError](call(core.Invite(t.Context(), ann.client, ann.principal(), "carol@example.com", account.RoleOwner, true)))
	if limited == nil {
		t.Error("an address is invited without bound")
	}
}

// An invitation by mail is a mail that its inviter asks for: it needs a verified address, and counts for the inviter's network and for
// the invited address there. What one account sends to an address, no other account lacks.
func TestInvite_MailLimits(t *testing.T) {
	t.Parallel()
	core := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress, c.Limits.MailsPerIP = 3, 5 })
	ann, bob := signedIn(t, core.Service, "ann@example.com"), signedIn(t, core.Service, "bob@example.com")
	ann.shares("Shop")
	invite := func(p somebody, email string) error {
		return call(core.Invite(t.Context(), p.client, p.principal(), email, account.RoleViewer, true))
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
