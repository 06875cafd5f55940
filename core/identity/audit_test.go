package identity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
)

const password = "correct horse battery"

func withPasswords(t *testing.T) func(*identity.Config) {
	t.Helper()
	hasher := pgtest.Passwords()
	return func(c *identity.Config) { c.Passwords = hasher }
}

// Everything that changes who may come in is in the audit log, with who did it and from where.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	work := identity.Client{IP: "203.0.113.8", UserAgent: "Work\x00/1.0\xff" + strings.Repeat("x", 300)}
	ctx := t.Context()
	first := must(core.Persons.SignUp(ctx, home, "Ann", "ann@example.com", password, ""))(t)
	owner := first.Account.ID
	second := must(core.Persons.SignIn(ctx, work, "ann@example.com", password))(t)
	test := must2(core.Keys.Create(ctx, home, own(first), account.KeyRequest{Name: "ci"}))(t)
	live := must2(core.Keys.Create(ctx, work, own(first), account.KeyRequest{Name: "<b>", Environment: network.Live, ExpiresIn: time.Hour}))(t)
	name, off := "renamed", false
	ok(t, call(core.Keys.Update(ctx, home, own(first), test.ID, account.KeyChange{Name: &name, Enabled: &off})))
	next := must2(core.Keys.Rotate(ctx, home, own(first), test.ID, 0))(t)
	other := must2(core.Keys.Rotate(ctx, home, own(first), live.ID, time.Minute))(t)
	ok(t, core.Keys.Delete(ctx, home, own(first), next.ID))
	ok(t, core.Sessions.Revoke(ctx, home, own(first), second.Session.ID))
	third := must(core.Persons.SignIn(ctx, home, "ann@example.com", password))(t)
	equal(t, "other sessions", must(core.Sessions.RevokeOthers(ctx, home, own(third)))(t), 1)
	// What fails leaves no trace.
	is(t, "an unknown key", core.Keys.Delete(ctx, home, own(third), uuid.New()), account.ErrNotFound)
	is(t, "an unknown session", core.Sessions.Revoke(ctx, home, own(third), uuid.New()), account.ErrNotFound)
	is(t, "rotated twice", call2(core.Keys.Rotate(ctx, home, own(third), live.ID, time.Minute)), account.ErrKeyRotated)
	is(t, "a wrong password", core.Persons.DeleteAccount(ctx, with(home, "a wrong password"), own(third)), identity.ErrPassword)
	equal(t, "sessions", must(core.Sessions.RevokeAll(ctx, home, own(third)))(t), 1)
	is(t, "an ended session", core.Persons.DeleteAccount(ctx, with(work, password), own(third)), identity.ErrSignedOut)
	last := must(core.Persons.SignIn(ctx, home, "ann@example.com", password))(t)
	ok(t, core.Persons.DeleteAccount(ctx, with(work, password), own(last)))
	is(t, "deleted twice", core.Persons.DeleteAccount(ctx, with(work, password), own(last)), identity.ErrSignedOut)

	stamp := func(at *time.Time) string { return at.UTC().Format(time.RFC3339) }
	old := must(core.Store.Key(ctx, owner, live.ID))(t)
	workplace := "203.0.113.8 Work/1.0\uFFFD" + strings.Repeat("x", 247)
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.7 Home/1.0",
		"signed_in||with a password|" + workplace,
		"key_created|ci|test key, never expires|203.0.113.7 Home/1.0",
		"key_created|<b>|live key, expires " + stamp(live.ExpiresAt) + "|" + workplace,
		`key_updated|renamed|name "ci" → "renamed", disabled|203.0.113.7 Home/1.0`,
		"key_rotated|renamed|" + next.Start + "… takes its place at once|203.0.113.7 Home/1.0",
		"key_rotated|<b>|" + other.Start + "… takes its place, it works until " + stamp(old.ExpiresAt) + "|203.0.113.7 Home/1.0",
		"key_deleted|renamed||203.0.113.7 Home/1.0",
		"sessions_revoked||one session|203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.7 Home/1.0",
		"sessions_revoked||all other sessions|203.0.113.7 Home/1.0",
		"sessions_revoked||all sessions|203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.7 Home/1.0",
		"account_deleted|||" + workplace,
	}
	equal(t, "the audit log", auditLog(t, core, owner), want)
}

// own is who has signed in, acting on the account that they signed in to.
func own(in *identity.SignedIn) *identity.Principal {
	return &identity.Principal{Session: in.Session, Person: in.Account, Account: in.Account, Role: account.RoleOwner}
}

// with is a client whose request repeats the password.
func with(client identity.Client, password string) identity.Client {
	client.Password = password
	return client
}

// auditEntries are the newest entries of an account's log.
func auditEntries(t *testing.T, core *identity.Service, of uuid.UUID, limit int) []account.AuditEntry {
	t.Helper()
	entries, _, err := core.Store.AuditLog(t.Context(), of, access.AuditQuery{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// auditLog is an account's log, oldest first, without the entries of whole hours, which TestAuditLog_Hourly sees to.
func auditLog(t *testing.T, core *identity.Service, owner uuid.UUID) []string {
	t.Helper()
	entries := auditEntries(t, core, owner, 100)
	lines := []string{}
	for _, e := range slices.Backward(entries) {
		switch e.Action {
		case account.SignInFailed, account.SignedOut, account.ResetRequested, account.AccountSwitched:
		default:
			lines = append(lines, fmt.Sprintf("%s|%s|%s|%s %s", e.Action, e.KeyName, e.Detail, e.Actor.IPAddress, e.Actor.UserAgent))
		}
	}
	return lines
}

// Failed sign-ins, requests of a new password, sign-outs and switches are in the log, one entry an hour, address and person; those for
// addresses without an account leave nothing.
func TestAuditLog_Hourly(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), func(c *identity.Config) { c.MailQueued = func() {} })
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	here, there := identity.Client{IP: "203.0.113.7", UserAgent: "Here/1.0"}, identity.Client{IP: "203.0.113.8", UserAgent: "There/1.0"}
	pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now()`)
	for range 3 {
		is(t, "a wrong password", call(core.Persons.SignIn(t.Context(), here, "Ann@example.com", "a wrong password")), identity.ErrCredentials)
		is(t, "nobody", call(core.Persons.SignIn(t.Context(), here, "nobody@example.com", password)), identity.ErrCredentials)
		in := must(core.Persons.SignIn(t.Context(), here, "ann@example.com", password))(t)
		leaving := here
		leaving.Token = in.Token
		is(t, "signed out", core.Sessions.SignOut(t.Context(), leaving), nil)
		is(t, "signed out again", core.Sessions.SignOut(t.Context(), leaving), nil)
	}
	is(t, "elsewhere", call(core.Persons.SignIn(t.Context(), there, "ann@example.com", "a wrong password")), identity.ErrCredentials)
	for _, email := range []string{"ann@example.com", "ann@example.com", "nobody@example.com"} {
		is(t, "a reset of "+email, core.Persons.RequestPasswordReset(t.Context(), there, email, ""), nil)
	}
	pgtest.Exec(t, core.Store, `INSERT INTO members (account_id, person_id, role, created_at)
		VALUES ($1, $2, 'viewer', now())`, ann.id, bob.id)
	for range 2 {
		is(t, "switched", core.Members.Act(t.Context(), bob.client, bob.principal(), ann.id), nil)
		is(t, "the same again", core.Members.Act(t.Context(), bob.client, bob.principal(), ann.id), nil)
		is(t, "back", core.Members.Act(t.Context(), bob.client, bob.principal(), bob.id), nil)
	}
	// log counts the entries of an account; an hour may end meanwhile, so it adds up what was done.
	log := func(of uuid.UUID) map[string]int {
		entries := auditEntries(t, core, of, 100)
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
	equal(t, "the entries of ann and bob", []map[string]int{log(ann.id), log(bob.id)}, want)
	equal(t, "entries of nobody", pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM audit_log WHERE account_id NOT IN (SELECT id FROM accounts)`), 0)
}
