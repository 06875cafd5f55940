package identity_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// told waits until all mails are sent and returns the notices, each as its recipient and the line that says what happened.
func (m *mailing) told(t *testing.T) (notices []string) {
	t.Helper()
	asynctest.Eventually(t, "all mails are sent", func() bool { return pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM mails`) == 0 })
	for len(m.notices) > 0 {
		got := <-m.notices
		parts := must(got.Parts())(t)
		what, _, _ := strings.Cut(parts["text/plain"], "\n")
		notices = append(notices, strings.Join(got.To, " ")+": "+strings.TrimSpace(what))
	}
	slices.Sort(notices)
	return notices
}

// verified is a person who is signed in and has proven the address.
func (m *mailing) verified(t *testing.T, email string) somebody {
	t.Helper()
	p := signedIn(t, m.Service, email)
	pgtest.Exec(t, m.Store, `UPDATE accounts SET email_verified_at = now() WHERE email = $1`, email)
	return p
}

// A person is told what was done to their account, at the address that they had when it was done, and the owners of an account of its
// new live keys and owners. Nobody is told at an address that was never proven.
func TestSecurityNotices(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann, bob, eve := core.verified(t, "ann@example.com"), core.verified(t, "bob@example.com"), signedIn(t, core.Service, "eve@example.com")
	compare := func(after string, want ...string) {
		t.Helper()
		equal(t, "after "+after, core.told(t), want)
	}
	key := func(p somebody, e network.Environment) *account.Key {
		t.Helper()
		return must2(core.Keys.Create(t.Context(), p.client, p.principal(), account.KeyRequest{Name: "ci <x.y>", Environment: e}))(t)
	}

	shop := ann.shares("Shop <x.y>")
	join := func(p somebody, email string, role account.Role) {
		t.Helper()
		ok(t, call(core.Members.Invite(t.Context(), ann.client, ann.principal(), email, role, true)))
		is(t, email+" joins", p.accepts(core.token(t)), nil)
	}
	join(bob, "bob@example.com", account.RoleDeveloper)
	compare("a developer has joined", "ann@example.com: Somebody was invited to the account Shop x y at intents.example: bob@example.com as developer")
	ok(t, call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), bob.id, account.RoleOwner)))
	const owner = "The account Shop x y at intents.example has a new owner: bob@example.com: owner, was developer"
	compare("a new owner", "ann@example.com: "+owner, "bob@example.com: "+owner)
	join(eve, "eve@example.com", account.RoleOwner) // the invitation's link proves the address
	const joined = "The account Shop x y at intents.example has a new owner: eve@example.com as owner"
	const invited = "Somebody was invited to the account Shop x y at intents.example: eve@example.com as owner"
	compare("an owner has joined", "ann@example.com: "+invited, "ann@example.com: "+joined, "bob@example.com: "+invited, "bob@example.com: "+joined, "eve@example.com: "+joined)
	ok(t, call(core.Members.ChangeRole(t.Context(), ann.client, ann.principal(), eve.id, account.RoleViewer)))
	const demoted = "A member of the account Shop x y at intents.example has another role: eve@example.com: viewer, was owner"
	compare("an owner is a viewer", "ann@example.com: "+demoted, "bob@example.com: "+demoted, "eve@example.com: "+demoted)

	key(ann, network.Test)
	live := key(ann, network.Live)
	const made = "The account Shop x y at intents.example has a new live API key: ci x y"
	compare("a live key", "ann@example.com: "+made, "bob@example.com: "+made)
	ok(t, call2(core.Keys.Rotate(t.Context(), bob.client, bob.principal(), live.ID, 0)))
	const rotated = "A live API key of the account Shop x y at intents.example was replaced by a new one: ci x y"
	compare("a rotation", "ann@example.com: "+rotated, "bob@example.com: "+rotated)
	if a := ann.principal(); a.Account.ID != shop {
		t.Fatalf("ann acts on %s", a.Account.ID)
	}

	is(t, "a wallet", newWallet(t).link(t, core.Service, ann.in, ""), nil)
	compare("a wallet", "ann@example.com: Your account at intents.example has another way to sign in now: a wallet or an identity provider was linked.")
	changed := must(core.Persons.ChangePassword(t.Context(), ann.client, ann.principal(), password, newPassword))(t)
	compare("another password", "ann@example.com: The password of your account at intents.example was changed.")
	ok(t, call(core.Persons.ResetPassword(t.Context(), ann.client, identity.ResetRequest{Token: core.request(t, "bob@example.com"), NewPassword: newPassword})))
	compare("a reset", "bob@example.com: The password of your account at intents.example was set by a link for a forgotten password.")

	here := identity.Client{IP: "203.0.113.7", Token: changed.Token}
	ok(t, core.Persons.ChangeEmail(t.Context(), here, own(changed), "new@example.com", ""))
	for range 2 { // at the present address, and at the new one
		ok(t, call(core.Persons.VerifyEmail(t.Context(), here, core.token(t), "")))
	}
	compare("another address", "ann@example.com: Your account at intents.example has another e-mail address now. This one no longer signs in.")

	fred := signedIn(t, core.Service, "fred@example.com")
	key(fred, network.Live)
	compare("a live key of an address that nobody proved")
}

// A notice says when, by whom and from where in words of this service, with the page that undoes it, and has no part of the key.
func TestSecurityNotice_Text(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann := core.verified(t, "ann@example.com")
	ann.client.UserAgent = "visit evil.example/now"
	_, text, err := core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "https://evil.example", Environment: network.Live})
	ok(t, err)
	at := pgtest.LookUp[time.Time](t, core.Store, `SELECT occurred_at FROM audit_log WHERE action = 'key_created'`)
	got := <-core.notices
	parts := must(got.Parts())(t)
	for _, body := range parts {
		says(t, body, []string{
			at.UTC().Format("15:04:05 UTC"), "By: ann@example.com", "visit evil example", "203.0.113.7", "http://intents.example/console", "https evil example",
		}, []string{"evil.example", text.Reveal(), text.Start()})
	}
}

// Who rotates live keys all day gets five mails of it an hour, and those keep none away about a password.
func TestSecurityNotices_Bound(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann := core.verified(t, "ann@example.com")
	for range 8 {
		ok(t, call2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "ci", Environment: network.Live})))
	}
	equal(t, "notices of 8 keys", len(core.told(t)), 5)
	ok(t, call(core.Persons.ChangePassword(t.Context(), ann.client, ann.principal(), password, newPassword)))
	equal(t, "notices of a password", len(core.told(t)), 1)
}

// Where no mail is sent nothing is queued.
func TestSecurityNotices_MailOff(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now()`)
	ok(t, call2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "ci", Environment: network.Live})))
	equal(t, "mails are queued", pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM mails`), 0)
}
