package identity_test

import (
	"errors"
	"net/http"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// admitted repeats a request until it is refused, and returns how many were admitted.
func admitted(t *testing.T, request func() error) (n int) {
	t.Helper()
	for ; n < 100_000; n++ {
		if err := request(); waits(t, err) > 0 {
			return n
		}
	}
	t.Fatalf("none of %d requests was refused", n)
	return 0
}

// admits is a request of a route that needs a session, which the client may lack.
func admits(t *testing.T, core *identity.Service, v identity.Client, method string) error {
	t.Helper()
	_, err := core.Sessions.Admit(t.Context(), v, method)
	if errors.Is(err, identity.ErrSignedOut) {
		return nil
	}
	return err
}

// Writes of a person in all sessions together are limited, which bounds the entries of the audit log; reads and other people are not
// touched.
func TestAdmit_Writes(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	here := identity.Client{IP: "203.0.113.7", Token: ann.token, Person: ann.id}
	second := must(core.Persons.SignIn(t.Context(), identity.Client{}, "ann@example.com", password))(t)
	there := identity.Client{IP: "203.0.113.8", Token: second.Token}
	key := must2(core.Keys.Create(t.Context(), here, ann.principal(), account.KeyRequest{Name: "ci"}))(t)
	on := false
	n := admitted(t, func() error {
		if err := admits(t, core, here, http.MethodPost); err != nil {
			return err
		}
		on = !on
		return call(core.Keys.Update(t.Context(), here, ann.principal(), key.ID, account.KeyChange{Enabled: &on}))
	})
	if n < 600 {
		t.Errorf("only %d writes were admitted", n)
	}
	// A bucket of its own would be full; the shared one has refilled by ten a second.
	if more := admitted(t, func() error { return admits(t, core, there, http.MethodPost) }); more > 300 {
		t.Errorf("another session has %d writes more", more)
	}
	if entries := auditEntries(t, core, ann.id, 10_000); len(entries) > n+10 {
		t.Errorf("%d entries of %d writes", len(entries), n)
	}
	for what, c := range map[string]struct {
		client  identity.Client
		method  string
		limited bool
	}{
		"a read":         {here, http.MethodGet, false},
		"another person": {identity.Client{IP: here.IP, Token: bob.token}, http.MethodPost, false},
		"nobody":         {identity.Client{IP: here.IP}, http.MethodPost, false},
	} {
		isLimited(t, what, admits(t, core, c.client, c.method), c.limited)
	}
}

// A network without sessions is limited, with or without cookies that belong to nobody, and takes nothing from those who are signed in
// there; a signed-in person's reads are limited for that person alone.
func TestAdmit_Reads(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	visits := func(ip, token string) func() error {
		return func() error { return admits(t, core, identity.Client{IP: ip, Token: token}, http.MethodGet) }
	}
	if n := admitted(t, visits("203.0.113.7", "")); n < 1200 {
		t.Errorf("only %d requests of a network were admitted", n)
	}
	if n := admitted(t, visits("2001:db8::1", "no session's token")); n < 1200 {
		t.Errorf("only %d requests with a cookie of nobody were admitted", n)
	}
	if n := admitted(t, visits("203.0.113.7", ann.token)); n < 1800 {
		t.Errorf("only %d reads of a person were admitted", n)
	}
	is(t, "another person in that network", visits("203.0.113.7", bob.token)(), nil)
	is(t, "another network", visits("203.0.113.9", "")(), nil)
}
