package identity_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// write is a write of a session, with what its effect asks for.
type write struct {
	what  string
	do    func(identity.Client) error
	needs bool
}

// try makes writes in an old session: those with an effect need the password, and all others nothing.
func try(t *testing.T, client identity.Client, writes []write) {
	t.Helper()
	for _, w := range writes {
		if !w.needs {
			is(t, w.what, w.do(client), nil)
			continue
		}
		is(t, w.what+" in an old session", w.do(client), identity.ErrPasswordNeeded)
		is(t, w.what+" with a wrong password", w.do(with(client, "a wrong password")), identity.ErrPassword)
		is(t, w.what+" with the password", w.do(with(client, password)), nil)
	}
}

func age(t *testing.T, core *identity.Service) {
	t.Helper()
	pgtest.Exec(t, core.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
}

// What gives a live key more than it had needs a fresh session or the password, by the values before and after and not by the operation.
func TestEffects_Keys(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	live := must2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "live", Environment: network.Live}))(t)
	test := must2(core.Keys.Create(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "test"}))(t)
	age(t, core)
	on := ann.principal()
	change := func(key *account.Key, c account.KeyChange) func(identity.Client) error {
		return func(v identity.Client) error { return call(core.Keys.Update(t.Context(), v, on, key.ID, c)) }
	}
	scopes := func(names ...string) *apikey.Scopes { return new(must(account.ParseScopes(names))(t)) }
	networks := func(texts ...string) *[]netip.Prefix { return new(must(account.ParseNetworks(texts))(t)) }
	try(t, ann.client, []write{
		{"a test key", func(v identity.Client) error {
			return call2(core.Keys.Create(t.Context(), v, on, account.KeyRequest{Name: "ci"}))
		}, false},
		{"a live key", func(v identity.Client) error {
			return call2(core.Keys.Create(t.Context(), v, on, account.KeyRequest{Name: "ci", Environment: network.Live}))
		}, true},
		{"another name", change(live, account.KeyChange{Name: new("other")}), false},
		{"disabled", change(live, account.KeyChange{Enabled: new(false)}), false},
		{"enabled", change(live, account.KeyChange{Enabled: new(true)}), true},
		{"enabled again", change(live, account.KeyChange{Enabled: new(true)}), false},
		{"fewer scopes", change(live, account.KeyChange{Scopes: scopes("webhooks")}), false},
		{"another scope", change(live, account.KeyChange{Scopes: scopes("intents:read")}), true},
		{"networks", change(live, account.KeyChange{Networks: networks("203.0.113.0/24", "2001:db8::/32")}), false},
		{"narrower networks", change(live, account.KeyChange{Networks: networks("203.0.113.7", "2001:db8:1::/48")}), false},
		{"a wider network", change(live, account.KeyChange{Networks: networks("203.0.113.6/31")}), true},
		{"any network", change(live, account.KeyChange{Networks: networks()}), true},
		{"an expiry", change(live, account.KeyChange{ExpiresIn: new(time.Hour)}), false},
		{"an earlier expiry", change(live, account.KeyChange{ExpiresIn: new(time.Minute)}), false},
		{"a later expiry", change(live, account.KeyChange{ExpiresIn: new(2 * time.Hour)}), true},
		{"no expiry", change(live, account.KeyChange{ExpiresIn: new(time.Duration)}), true},
		{"narrower and wider", change(live, account.KeyChange{Networks: networks("203.0.113.7"), Scopes: scopes("webhooks")}), true},
		{"a test key's everything", change(test, account.KeyChange{Enabled: new(false), ExpiresIn: new(time.Hour), Scopes: scopes("webhooks"), Networks: networks("203.0.113.7")}), false},
		{"a test key's everything back", change(test, account.KeyChange{Enabled: new(true), ExpiresIn: new(time.Duration), Scopes: new(apikey.AllScopes), Networks: networks()}), false},
		{"another test key", func(v identity.Client) error { return call2(core.Keys.Rotate(t.Context(), v, on, test.ID, 0)) }, false},
		{"another live key", func(v identity.Client) error { return call2(core.Keys.Rotate(t.Context(), v, on, live.ID, time.Hour)) }, true},
		{"the old key, deleted", func(v identity.Client) error { return core.Keys.Delete(t.Context(), v, on, live.ID) }, false},
	})
}

// A role that is given, by an invitation or a change, and one that is taken from another person need a fresh session or the password.
func TestEffects_Roles(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	shop := ann.shares("Shop")
	is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleViewer)), nil)
	pgtest.Exec(t, core.Store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT $1, id, 'owner', now() FROM accounts WHERE email = 'eve@example.com'`, shop)
	age(t, core)
	on := ann.principal()
	change := func(role account.Role) func(identity.Client) error {
		return func(v identity.Client) error { return call(core.Members.ChangeRole(t.Context(), v, on, bob.id, role)) }
	}
	invite := func(role account.Role) func(identity.Client) error {
		return func(v identity.Client) error {
			return call(core.Members.Invite(t.Context(), v, on, string(role)+"@example.com", role, true))
		}
	}
	try(t, ann.client, []write{
		{"a developer", change(account.RoleDeveloper), true},
		{"a developer again", change(account.RoleDeveloper), false},
		{"an owner", change(account.RoleOwner), true},
		{"a demoted owner", change(account.RoleViewer), true},
		{"an owner once more", change(account.RoleOwner), true},
		{"an invited viewer", invite(account.RoleViewer), true},
		{"an invited developer", invite(account.RoleDeveloper), true},
		{"an invited owner", invite(account.RoleOwner), true},
		{"another name", func(v identity.Client) error { return call(core.Members.RenameShared(t.Context(), v, on, "Kiosk")) }, false},
		{"the person's own role", func(v identity.Client) error {
			return call(core.Members.ChangeRole(t.Context(), v, on, ann.id, account.RoleViewer))
		}, false},
	})
	pgtest.Exec(t, core.Store, `UPDATE members SET role = 'owner'`)
	try(t, ann.client, []write{
		{"a removed member", func(v identity.Client) error { return call(core.Members.Remove(t.Context(), v, on, bob.id)) }, true},
		{"the shared account", func(v identity.Client) error { return core.Members.DeleteShared(t.Context(), v, on) }, true},
	})
}

// A live webhook with another receiver, more events or a new secret needs a fresh session or the password, and a test webhook nothing.
func TestEffects_Webhooks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	core := newServiceOn(t, store, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	age(t, core)
	on, hooks := ann.principal(), webhooks.NewService(store.Webhooks, pgtest.WebhookRules(t, make([]byte, 32), nil), core)
	for environment, live := range map[network.Environment]bool{network.Test: false, network.Live: true} {
		owner := ownerIn(on.Account.ID, environment)
		e, _, err := hooks.New(owner, webhooks.Draft{URL: "https://example.com"})
		ok(t, err)
		change := func(c webhooks.Change) func(identity.Client) error {
			return func(v identity.Client) error { return call(hooks.Update(t.Context(), hooks.Person(v, on), e.ID, c)) }
		}
		types := func(names ...string) *[]string { return &names }
		try(t, ann.client, []write{
			{"a webhook", func(v identity.Client) error { return hooks.Create(t.Context(), hooks.Person(v, on), e, [32]byte{}) }, live},
			{"a description", change(webhooks.Change{Description: new("mine")}), false},
			{"fewer events", change(webhooks.Change{Types: types("transfer.filled", "transfer.failed")}), false},
			{"fewer still", change(webhooks.Change{Types: types("transfer.filled")}), false},
			{"other events", change(webhooks.Change{Types: types("transfer.failed")}), live},
			{"all events", change(webhooks.Change{Types: new([]string)}), live},
			{"another receiver", change(webhooks.Change{URL: new("https://example.org")}), live},
			{"disabled", change(webhooks.Change{Enabled: new(false)}), false},
			{"enabled", change(webhooks.Change{Enabled: new(true)}), live},
			{"a secret", func(v identity.Client) error {
				return call2(hooks.RotateSecret(t.Context(), hooks.Person(v, on), e.ID, time.Hour))
			}, live},
			{"deleted", func(v identity.Client) error { return hooks.Delete(t.Context(), hooks.Person(v, on), e.ID) }, false},
		})
	}
}

// A person without a password is told to sign in again, and a password does not help.
func TestEffects_WithoutPassword(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann := signedIn(t, core, "ann@example.com")
	pgtest.Exec(t, core.Store, `UPDATE accounts SET password_hash = ''`)
	age(t, core)
	for _, client := range []identity.Client{ann.client, with(ann.client, password)} {
		err := call(core.Members.Invite(t.Context(), client, ann.principal(), "bob@example.com", account.RoleViewer, false))
		if !errors.Is(err, identity.ErrSignInNeeded) || !errors.Is(err, identity.ErrSessionNotFresh) {
			t.Errorf("%v", err)
		}
	}
}

// The rights are read under the lock: a session that ends, and a member who is removed or gets another role, while a request waits makes
// and rotates no key.
func TestRights_Locked(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		end  string
		want error
	}{
		"ended session":   {`DELETE FROM sessions WHERE account_id = $2 AND $1 = $1`, identity.ErrSignedOut},
		"removed member":  {`DELETE FROM members WHERE account_id = $1 AND person_id = $2`, account.ErrNotMember},
		"another role":    {`UPDATE members SET role = 'viewer' WHERE account_id = $1 AND person_id = $2`, identity.ErrRole},
		"an aged session": {`UPDATE sessions SET created_at = now() - interval '1 hour' WHERE account_id = $2 AND $1 = $1`, identity.ErrPasswordNeeded},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			core := newService(t, withPasswords(t))
			ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
			shop := ann.shares("Shop")
			is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleDeveloper)), nil)
			on := bob.principal()
			key := must2(core.Keys.Create(t.Context(), bob.client, on, account.KeyRequest{Name: "live", Environment: network.Live}))(t)
			lock := must(core.Store.Pool().BeginTx(t.Context(), nil))(t)
			defer func() { _ = lock.Rollback() }()
			must(lock.ExecContext(t.Context(), `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE`, shop))(t)
			created, rotated := make(chan error, 1), make(chan error, 1)
			go func() {
				created <- call2(core.Keys.Create(t.Context(), bob.client, on, account.KeyRequest{Name: "ci", Environment: network.Live}))
			}()
			go func() { rotated <- call2(core.Keys.Rotate(t.Context(), bob.client, on, key.ID, time.Hour)) }()
			waiting(t, core, 1) // the other waits for its turn
			must(lock.ExecContext(t.Context(), c.end, shop, bob.id))(t)
			ok(t, lock.Commit())
			is(t, "created", <-created, c.want)
			is(t, "rotated", <-rotated, c.want)
			equal(t, "keys", pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM api_keys`), 1)
		})
	}
}
