package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

const newPassword = "staple correct horse"

func TestChangePassword(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	in, err := core.SignUp(t.Context(), home, "Ann", "ann@example.com", password, "")
	if err != nil {
		t.Fatal(err)
	}
	home.Device = in.Device
	changed, err := core.ChangePassword(t.Context(), home, own(in), password, newPassword)
	if err != nil {
		t.Fatal(err)
	}
	// What was read before the change is worth nothing after it, even with the password of then.
	if _, err := core.ChangePassword(t.Context(), home, own(in), password, "another password"); !errors.Is(err, identity.ErrSignedOut) {
		t.Errorf("with the account as it was: %v", err)
	}
	if err := core.SignOut(t.Context(), identity.Client{Token: changed.Token}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.ChangePassword(t.Context(), home, own(changed), newPassword, password); !errors.Is(err, identity.ErrSignedOut) {
		t.Errorf("with a session that has ended: %v", err)
	}
	if changed.Device == "" || changed.Device == in.Device {
		t.Errorf("the device is %q, before the change %q", changed.Device, in.Device)
	}
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
		"password_changed||all other sessions ended|203.0.113.7 Home/1.0",
	}
	if diff := cmp.Diff(want, auditLog(t, core, in.Account.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Somebody at a browser that is signed in can try few passwords.
func TestChangePassword_Guesses(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), func(c *identity.Config) { c.Limits.SignInPerAccountAndIP = 3 })
	client := identity.Client{IP: "203.0.113.7"}
	in, err := core.SignUp(t.Context(), client, "Ann", "ann@example.com", password, "")
	if err != nil {
		t.Fatal(err)
	}
	guess := func(current, next string) error {
		_, err := core.ChangePassword(t.Context(), client, own(in), current, next)
		return err
	}
	for range 5 { // they are no guesses
		if invalid, ok := errors.AsType[*account.InvalidError](guess(password, "short")); !ok || invalid.Field != "newPassword" {
			t.Fatalf("a short password: %v", invalid)
		}
	}
	for range 3 {
		if err := guess("a wrong password", newPassword); !errors.Is(err, identity.ErrPassword) {
			t.Fatalf("a wrong password: %v", err)
		}
	}
	if wait := waits(t, guess(password, newPassword)); wait <= 0 || wait > time.Hour {
		t.Errorf("the fourth guess waits %s", wait)
	}
}
