package identity_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// attempt signs in and tells how that ended.
func attempt(t *testing.T, core *identity.Service, v identity.Client, email, password string) string {
	t.Helper()
	_, err := core.Persons.SignIn(t.Context(), v, email, password)
	switch {
	case err == nil:
		return "in"
	case errors.Is(err, identity.ErrCredentials):
		return "wrong"
	case waits(t, err) > 0:
		return "limited"
	}
	return err.Error()
}

// attack tries wrong passwords for an address of e-mail from many networks until all are refused, and counts those checked.
func attack(t *testing.T, core *identity.Service, email string, triesEach int) (checked int) {
	t.Helper()
	for n := range 12 {
		for range triesEach {
			if attempt(t, core, identity.Client{IP: fmt.Sprintf("2001:db8:bad:%x::1", n)}, email, "a wrong password") == "wrong" {
				checked++
			}
		}
	}
	return checked
}

// stores are where limits are counted.
var stores = map[string]func(*testing.T) func(*identity.Config){
	"in Redis": func(t *testing.T) func(*identity.Config) {
		t.Helper()
		return countingIn(t, startRedis(t).URL, generous)
	},
	"in memory": func(*testing.T) func(*identity.Config) { return func(*identity.Config) {} },
}

// newGuarded is a service that takes 8 tries an hour for an account, 3 of them from one address.
func newGuarded(t *testing.T, change ...func(*identity.Config)) *identity.Service {
	t.Helper()
	return newService(t, append(change, withPasswords(t), func(c *identity.Config) {
		c.Limits.SignInPerAccount, c.Limits.SignInPerAccountAndIP = 8, 3
	})...)
}

func signUp(t *testing.T, core *identity.Service, v identity.Client, email string) *identity.SignedIn {
	t.Helper()
	return must(core.Persons.SignUp(t.Context(), v, "", email, password, ""))(t)
}

// Whatever strangers try, the owner's right password is taken from a device that has signed in before. All strangers together
// have as many tries as the account's limit says.
func TestSignIn_DistributedGuessing(t *testing.T) {
	t.Parallel()
	home := identity.Client{IP: "203.0.113.7"}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newGuarded(t, store(t))
			device := signUp(t, core, home, "ann@example.com").Device
			bob := signUp(t, core, home, "bob@example.com").Device
			for _, email := range []string{"ann@example.com", "nobody@example.com"} {
				if checked := attack(t, core, email, 4); checked != 8 {
					t.Errorf("strangers had %d passwords of %s checked, want 8", checked, email)
				}
			}
			id, mac, _ := strings.Cut(device, ".")
			other := strings.Repeat("A", len(id))
			for _, c := range []struct{ name, ip, device, password, want string }{
				{"at home", home.IP, device, password, "in"},
				{"elsewhere", "198.51.100.1", device, password, "in"},
				{"beside an attacker", "2001:db8:bad:0::2", device, password, "in"},
				{"a wrong password", home.IP, device, "a wrong password", "wrong"},
				{"after it", home.IP, device, password, "in"},
				{"no device", home.IP, "", password, "limited"},
				{"another account's device", home.IP, bob, password, "limited"},
				{"another id", home.IP, other + "." + mac, password, "limited"},
				{"another MAC", home.IP, id + "." + strings.Repeat("A", len(mac)), password, "limited"},
				{"no MAC", home.IP, id, password, "limited"},
				{"junk", home.IP, "x", password, "limited"},
			} {
				if got := attempt(t, core, identity.Client{IP: c.ip, Device: c.device}, "ann@example.com", c.password); got != c.want {
					t.Errorf("%s: %s, want %s", c.name, got, c.want)
				}
			}
			if got := attempt(t, core, identity.Client{IP: home.IP, Device: device}, "nobody@example.com", password); got != "limited" {
				t.Errorf("a device at an address without an account: %s, want what strangers get", got)
			}
		})
	}
}

// Who resets the password by mail gets in with it from then on, however many passwords strangers try and however often the person has
// tried the forgotten one. It holds for an account that the mailed link has just made, too.
func TestResetPassword_AfterGuessing(t *testing.T) {
	t.Parallel()
	for name, signUp := range map[string]func(*mailing, *testing.T, identity.Client, string) *identity.SignedIn{
		"a verified address": (*mailing).signUp, "a new account": (*mailing).signUpUnverified,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newMailing(t, func(c *identity.Config) { c.Limits.SignInPerAccount, c.Limits.SignInPerAccountAndIP = 8, 3 })
			home := identity.Client{IP: "203.0.113.7"}
			home.Device = signUp(core, t, home, "ann@example.com").Device
			for attempt(t, core.Service, home, "ann@example.com", "a wrong password") == "wrong" {
			}
			attack(t, core.Service, "ann@example.com", 4)
			reset := must(core.Persons.ResetPassword(t.Context(), home, identity.ResetRequest{Token: core.request(t, "ann@example.com"), NewPassword: newPassword}))(t)
			attack(t, core.Service, "ann@example.com", 4)
			for _, c := range []struct{ name, device, password, want string }{
				{"the new password", reset.Device, newPassword, "in"}, {"a wrong one", reset.Device, password, "wrong"}, {"a stranger", "", newPassword, "limited"},
			} {
				if got := attempt(t, core.Service, identity.Client{IP: "198.51.100.1", Device: c.device}, "ann@example.com", c.password); got != c.want {
					t.Errorf("%s: %s, want %s", c.name, got, c.want)
				}
			}
		})
	}
}

// One network's tries end before the account's, so it cannot shut out others, known or not. They are counted whether or not the address
// has an account, and a right password forgives them.
func TestSignIn_GuessingFromOneNetwork(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newGuarded(t, store(t))
			signUp(t, core, identity.Client{}, "ann@example.com")
			signUp(t, core, identity.Client{}, "bob@example.com")
			try := func(ip, email, password string) string {
				return attempt(t, core, identity.Client{IP: ip}, email, password)
			}
			for _, email := range []string{"Ann@example.com", "nobody@example.com"} {
				var got []string
				for n := range 6 {
					got = append(got, try(fmt.Sprintf("2001:db8::%x", n), email, "a wrong password"))
				}
				equal(t, email, got, []string{"wrong", "wrong", "wrong", "limited", "limited", "limited"})
			}
			var others []string
			for _, ip := range []string{"2001:db8::ffff", "2001:db8:0:1::1", "203.0.113.7"} {
				others = append(others, try(ip, "ann@example.com", password))
			}
			equal(t, "the right password there and elsewhere", others, []string{"limited", "in", "in"})
			var bob []string
			for _, p := range []string{"wrong 1", "wrong 2", password, "wrong 3", "wrong 4", "wrong 5", password} {
				bob = append(bob, try("203.0.113.7", "bob@example.com", p))
			}
			equal(t, "bob", bob, []string{"wrong", "wrong", "in", "wrong", "wrong", "wrong", "limited"})
			// The right passwords have given back what they took and no more: strangers have 8 tries in all, the refused ones not
			// counted. A try in Redis may have to refill first.
			if checked := attack(t, core, "ann@example.com", 4); checked < 4 || checked > 5 {
				t.Errorf("strangers had %d more passwords checked, want 5, or 4 with Redis", checked)
			}
		})
	}
}

// A device's wrong passwords are its own, and a right one forgives them.
func TestSignIn_DeviceBudget(t *testing.T) {
	t.Parallel()
	core := newGuarded(t)
	first := identity.Client{IP: "203.0.113.7"}
	first.Device = signUp(t, core, first, "ann@example.com").Device
	second := identity.Client{IP: "203.0.113.7"}
	in := must(core.Persons.SignIn(t.Context(), second, "ann@example.com", password))(t)
	if second.Device = in.Device; first.Device == second.Device {
		t.Fatal("two browsers are one device")
	}
	var got []string
	for _, p := range []string{"wrong 1", "wrong 2", password, "wrong 1", "wrong 2", "wrong 3", password} {
		got = append(got, attempt(t, core, first, "ann@example.com", p))
	}
	got = append(got, attempt(t, core, second, "ann@example.com", password))
	equal(t, "tries of the first and second device", got, []string{"wrong", "wrong", "in", "wrong", "wrong", "wrong", "limited", "in"})
}

// Any number of devices at one address have as many passwords checked a minute as strangers there.
func TestSignIn_DevicesOfOneAddress(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t), func(c *identity.Config) { c.Limits.SignInPerIP = 4 })
	farm := identity.Client{IP: "203.0.113.7"}
	var devices []string
	for n := range 6 {
		devices = append(devices, signUp(t, core, farm, fmt.Sprintf("farm-%d@example.com", n)).Device)
	}
	var got []string
	for n, device := range devices {
		v := identity.Client{IP: farm.IP, Device: device}
		got = append(got, attempt(t, core, v, fmt.Sprintf("farm-%d@example.com", n), "a wrong password"))
	}
	equal(t, "tries of devices at one address", got, []string{"wrong", "wrong", "wrong", "wrong", "limited", "limited"})
}

// A device is known until the password changes or the account ends.
func TestSignIn_DeviceEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		password, deleted bool
		want              string
	}{
		"nothing": {want: "in"}, "another password": {password: true, want: "limited"}, "another account": {deleted: true, want: "limited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newGuarded(t)
			v := identity.Client{IP: "203.0.113.7"}
			v.Device = signUp(t, core, v, "ann@example.com").Device
			attack(t, core, "ann@example.com", 3)
			operator := account.Actor{Operator: true}
			if c.password {
				hash := must(core.Passwords.Hash(t.Context(), password))(t)
				ok(t, core.Store.SetPassword(t.Context(), "ann@example.com", hash, operator, time.Now()))
			}
			if c.deleted {
				ok(t, core.Store.DeleteAccount(t.Context(), "ann@example.com", operator, time.Now()))
				signUp(t, core, identity.Client{}, "ann@example.com")
			}
			if got := attempt(t, core, v, "ann@example.com", password); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A browser that several people share is known to the five that signed in last.
func TestSignIn_SharedDevice(t *testing.T) {
	t.Parallel()
	core := newGuarded(t)
	v := identity.Client{IP: "203.0.113.7"}
	email := func(n int) string { return fmt.Sprintf("person-%d@example.com", n) }
	for n := range 6 {
		v.Device = signUp(t, core, v, email(n)).Device
	}
	var got []string
	for n := range 6 {
		attack(t, core, email(n), 1)
		got = append(got, attempt(t, core, v, email(n), password))
	}
	equal(t, "who is known, oldest first", got, []string{"limited", "in", "in", "in", "in", "in"})
}

// The confirmation of an account's end counts the session's own tries.
func TestDeleteAccount_DistributedGuessing(t *testing.T) {
	t.Parallel()
	core := newGuarded(t)
	in := signUp(t, core, identity.Client{}, "ann@example.com")
	attack(t, core, "ann@example.com", 4)
	v := identity.Client{IP: "203.0.113.7", Token: in.Token}
	for range 3 {
		is(t, "a guess", core.Persons.DeleteAccount(t.Context(), with(v, "a wrong password"), own(in)), identity.ErrPassword)
	}
	isLimited(t, "the fourth", core.Persons.DeleteAccount(t.Context(), with(v, password), own(in)), true)
	other := must(core.Persons.SignIn(t.Context(), identity.Client{IP: v.IP, Device: in.Device}, "ann@example.com", password))(t)
	is(t, "another session", core.Persons.DeleteAccount(t.Context(), with(v, password), own(other)), nil)
}
