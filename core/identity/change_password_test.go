package identity_test

import (
	"testing"
	"time"

	"intents.internal/core/identity"
)

const newPassword = "staple correct horse"

func TestChangePassword(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	in := must(core.Persons.SignUp(t.Context(), home, "Ann", "ann@example.com", password, ""))(t)
	home.Device = in.Device
	elsewhere := must(core.Persons.SignIn(t.Context(), identity.Client{IP: "203.0.113.8"}, "ann@example.com", password))(t)
	changed := must(core.Persons.ChangePassword(t.Context(), home, own(in), password, newPassword))(t)
	// What was read before the change is worth nothing after it, even with the password of then.
	is(t, "with the account as it was", call(core.Persons.ChangePassword(t.Context(), home, own(in), password, "another password")), identity.ErrSignedOut)
	is(t, "the session that asked", call2(core.Sessions.Get(t.Context(), in.Token)), identity.ErrSignedOut)
	is(t, "another session", call2(core.Sessions.Get(t.Context(), elsewhere.Token)), identity.ErrSignedOut)
	is(t, "the new session", call2(core.Sessions.Get(t.Context(), changed.Token)), nil)
	ok(t, core.Sessions.SignOut(t.Context(), identity.Client{Token: changed.Token}))
	is(t, "with a session that has ended", call(core.Persons.ChangePassword(t.Context(), home, own(changed), newPassword, password)), identity.ErrSignedOut)
	if changed.Device == "" || changed.Device == in.Device {
		t.Errorf("the device is %q, before the change %q", changed.Device, in.Device)
	}
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.8 ", "password_changed||all other sessions ended|203.0.113.7 Home/1.0",
	}
	equal(t, "the audit log", auditLog(t, core, in.Account.ID), want)
	is(t, "the old password", call(core.Persons.SignIn(t.Context(), identity.Client{}, "ann@example.com", password)), identity.ErrCredentials)
	is(t, "the new password", call(core.Persons.SignIn(t.Context(), identity.Client{}, "ann@example.com", newPassword)), nil)
}

// Somebody at a browser that is signed in can try few passwords.
func TestChangePassword_Guesses(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), func(c *identity.Config) { c.Limits.SignInPerAccountAndIP = 3 })
	client := identity.Client{IP: "203.0.113.7"}
	in := must(core.Persons.SignUp(t.Context(), client, "Ann", "ann@example.com", password, ""))(t)
	guess := func(current, next string) error {
		return call(core.Persons.ChangePassword(t.Context(), client, own(in), current, next))
	}
	for range 5 { // they are no guesses
		isInvalid(t, "newPassword", guess(password, "short"))
	}
	for range 3 {
		is(t, "a wrong password", guess("a wrong password", newPassword), identity.ErrPassword)
	}
	if wait := waits(t, guess(password, newPassword)); wait <= 0 || wait > time.Hour {
		t.Errorf("the fourth guess waits %s", wait)
	}
}
