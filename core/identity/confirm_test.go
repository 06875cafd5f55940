package identity_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/network"
)

// Owners and live keys are made, and members removed, only soon after a sign-in or with the password, like links. All else works in any
// session.
func TestConfirm(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	ann.shares("Shop")
	is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleViewer)), nil)
	live, _, err := core.CreateKey(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "live", Environment: network.Live})
	is(t, "a live key", err, nil)
	test, _, err := core.CreateKey(t.Context(), ann.client, ann.principal(), account.KeyRequest{Name: "test"})
	is(t, "a test key", err, nil)
	pgtest.Exec(t, core.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	on := ann.principal()
	guessing, confirming := ann.client, ann.client
	guessing.Password, confirming.Password = "a wrong password", password

	create := func(env network.Environment) func(v identity.Client) error {
		return func(v identity.Client) error {
			_, _, err := core.CreateKey(t.Context(), v, on, account.KeyRequest{Name: "ci", Environment: env})
			return err
		}
	}
	rotate := func(key uuid.UUID) func(v identity.Client) error {
		return func(v identity.Client) error {
			_, _, err := core.RotateKey(t.Context(), v, on, key, 0)
			return err
		}
	}
	role := func(role account.Role) func(v identity.Client) error {
		return func(v identity.Client) error { return call(core.ChangeMember(t.Context(), v, on, bob.id, role)) }
	}
	invite := func(email string, role account.Role) func(v identity.Client) error {
		return func(v identity.Client) error { return call(core.Invite(t.Context(), v, on, email, role, false)) }
	}
	for _, c := range []struct {
		what  string
		do    func(identity.Client) error
		needs bool
	}{
		{"a test key", create(network.Test), false},
		{"another test key", rotate(test.ID), false},
		{"a live key", create(network.Live), true},
		{"another live key", rotate(live.ID), true},
		{"a developer", role(account.RoleDeveloper), false},
		{"an owner", role(account.RoleOwner), true},
		{"an invited viewer", invite("viewer@example.com", account.RoleViewer), false},
		{"an invited owner", invite("owner@example.com", account.RoleOwner), true},
		{"a removed member", func(v identity.Client) error { return call(core.RemoveMember(t.Context(), v, on, bob.id)) }, true},
	} {
		if !c.needs {
			is(t, c.what, c.do(ann.client), nil)
			continue
		}
		is(t, c.what+" in an old session", c.do(ann.client), identity.ErrSessionNotFresh)
		is(t, c.what+" with a wrong password", c.do(guessing), identity.ErrPassword)
		is(t, c.what+" with the password", c.do(confirming), nil)
	}
}
