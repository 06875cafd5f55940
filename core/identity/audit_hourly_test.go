package identity_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

// Failed sign-ins, requests of a new password, sign-outs and switches are in the log, one entry an hour, address and person; those for
// addresses without an account leave nothing.
func TestAuditLog_Hourly(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), func(c *identity.Config) { c.MailQueued = func() {} })
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	here, there := identity.Client{IP: "203.0.113.7", UserAgent: "Here/1.0"}, identity.Client{IP: "203.0.113.8", UserAgent: "There/1.0"}
	pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now()`)
	for range 3 {
		is(t, "a wrong password", call(core.SignIn(t.Context(), here, "Ann@example.com", "a wrong password")), identity.ErrCredentials)
		is(t, "nobody", call(core.SignIn(t.Context(), here, "nobody@example.com", password)), identity.ErrCredentials)
		in, err := core.SignIn(t.Context(), here, "ann@example.com", password)
		is(t, "signed in", err, nil)
		leaving := here
		leaving.Token = in.Token
		is(t, "signed out", core.SignOut(t.Context(), leaving), nil)
		is(t, "signed out again", core.SignOut(t.Context(), leaving), nil)
	}
	is(t, "elsewhere", call(core.SignIn(t.Context(), there, "ann@example.com", "a wrong password")), identity.ErrCredentials)
	for _, email := range []string{"ann@example.com", "ann@example.com", "nobody@example.com"} {
		is(t, "a reset of "+email, core.RequestPasswordReset(t.Context(), there, email, ""), nil)
	}
	pgtest.Exec(t, core.Store, `INSERT INTO members VALUES ($1, $2, 'viewer', now())`, ann.id, bob.id)
	for range 2 {
		is(t, "switched", core.Act(t.Context(), bob.client, bob.principal(), ann.id), nil)
		is(t, "the same again", core.Act(t.Context(), bob.client, bob.principal(), ann.id), nil)
		is(t, "back", core.Act(t.Context(), bob.client, bob.principal(), bob.id), nil)
	}
	// log counts the entries of an account; an hour may end meanwhile, so it adds up what was done.
	log := func(of uuid.UUID) map[string]int {
		entries, err := core.Store.AuditLog(t.Context(), of, uuid.Nil, 100)
		is(t, "the log", err, nil)
		done := map[string]int{}
		for _, e := range entries {
			if e.Action != account.SignedUp && e.Action != account.SignedIn {
				done[fmt.Sprintf("%s by %q from %s", e.Action, e.PersonEmail, e.Actor.IPAddress)] += 1 + e.Repeats
			}
		}
		if len(entries) > 16 {
			t.Errorf("%d entries", len(entries))
		}
		return done
	}
	want := []map[string]int{{
		`sign_in_failed by "" from 203.0.113.7`:                       3,
		`sign_in_failed by "" from 203.0.113.8`:                       1,
		`reset_requested by "" from 203.0.113.8`:                      2,
		`signed_out by "ann@example.com" from 203.0.113.7`:            3,
		`account_switched by "bob@example.com" from ` + bob.client.IP: 2,
	}, {
		`account_switched by "bob@example.com" from ` + bob.client.IP: 2,
	}}
	if diff := cmp.Diff(want, []map[string]int{log(ann.id), log(bob.id)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM audit_log WHERE account_id NOT IN (SELECT id FROM accounts)`); n != 0 {
		t.Errorf("%d entries of nobody", n)
	}
}
