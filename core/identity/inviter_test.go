package identity_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

// What ends the authority of an inviter ends the invitations that the inviter made to the accounts of others, whatever it is.
func TestInvitation_InviterEnds(t *testing.T) {
	t.Parallel()
	operator := account.Actor{Operator: true}
	for name, end := range map[string]func(t *testing.T, ann, bob somebody) error{
		"disabled": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			return bob.core.Store.DisableAccount(t.Context(), bob.client.UserAgent, operator, time.Now())
		},
		"disabled and enabled again": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			if err := bob.core.Store.DisableAccount(t.Context(), bob.client.UserAgent, operator, time.Now()); err != nil {
				return err
			}
			return bob.core.Store.EnableAccount(t.Context(), bob.client.UserAgent, operator, time.Now())
		},
		"reset by an operator": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			return bob.core.Store.SetPassword(t.Context(), bob.client.UserAgent, "hash", operator, time.Now())
		},
		"reset by a link": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			token, entry := account.NewLinkToken(), account.AuditEntry{AccountID: bob.id, Action: account.ResetLinkMade, ID: uuid.New(), OccurredAt: time.Now()}
			err := bob.core.Store.InsertResetToken(t.Context(), bob.principal().Person, account.HashToken(token), time.Now().Add(time.Hour), &entry)
			if err != nil {
				return err
			}
			return call(bob.core.ResetPassword(t.Context(), bob.client, identity.ResetRequest{Token: token, NewPassword: newPassword}))
		},
		"another password": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			return call(bob.core.ChangePassword(t.Context(), bob.client, bob.principal(), password, newPassword))
		},
		"removed": func(t *testing.T, ann, bob somebody) error {
			t.Helper()
			return call(ann.core.RemoveMember(t.Context(), ann.client, ann.principal(), bob.id))
		},
		"gone": func(t *testing.T, _, bob somebody) error {
			t.Helper()
			return bob.core.Store.DeleteAccount(t.Context(), bob.client.UserAgent, operator, time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newService(t, withPasswords(t))
			ann, bob, eve := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com"), signedIn(t, core, "eve@example.com")
			shop := ann.shares("Shop")
			is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleOwner)), nil)
			kept, ended := ann.invites("carol@example.com", account.RoleViewer), bob.invites("eve@example.com", account.RoleOwner)
			if err := end(t, ann, bob); err != nil {
				t.Fatal(err)
			}
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

// A request that was under way when its session ended invites nobody after that.
func TestInvite_SessionEnded(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	ann.shares("Shop")
	underWay := ann.principal()
	is(t, "reset", core.Store.SetPassword(t.Context(), "ann@example.com", "hash", account.Actor{Operator: true}, time.Now()), nil)
	is(t, "invited", call(core.Invite(t.Context(), ann.client, underWay, "eve@example.com", account.RoleOwner, false)), identity.ErrSignedOut)
	is(t, "disabled", core.Store.DisableAccount(t.Context(), "ann@example.com", account.Actor{Operator: true}, time.Now()), nil)
	is(t, "invited", call(core.Invite(t.Context(), ann.client, underWay, "eve@example.com", account.RoleOwner, false)), account.ErrNotMember)
}
