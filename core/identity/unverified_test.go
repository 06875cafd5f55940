package identity_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
)

// holder is an account with the address squat@example.com.
type holder struct {
	// key is the environment of a key that it has made, and deleted, empty for none.
	key     network.Environment
	deleted bool
	// statement is what else has happened to it, empty for nothing.
	statement string
	// loses tells whether it loses the address to a person who proves it.
	loses bool
}

// holders are named by what they have.
var holders = map[string]holder{
	"nothing":                     {loses: true},
	"a test key":                  {key: network.Test, loses: true},
	"a live key":                  {key: network.Live},
	"a live key that is deleted":  {key: network.Live, deleted: true},
	"a verified address":          {statement: `UPDATE accounts SET email_verified_at = now()`},
	"an operator who disabled it": {statement: `UPDATE accounts SET disabled_at = now()`},
}

func (h holder) signUp(t *testing.T, m *mailing) *identity.SignedIn {
	t.Helper()
	in := m.signUpUnverified(t, identity.Client{}, squatted)
	if h.key != "" {
		key := must2(m.Keys.Create(t.Context(), identity.Client{}, own(in), account.KeyRequest{Name: "key", Environment: h.key}))(t)
		if h.deleted {
			ok(t, m.Keys.Delete(t.Context(), identity.Client{}, own(in), key.ID))
		}
	}
	if h.statement != "" {
		pgtest.Exec(t, m.Store, h.statement)
	}
	return in
}

const squatted = "squat@example.com"

// lost checks that an account has lost its address and nothing else, and that its holder is told.
func lost(t *testing.T, m *mailing, in *identity.SignedIn) {
	t.Helper()
	_, owner, err := m.Sessions.Get(t.Context(), in.Token)
	if err != nil || owner.ID != in.Account.ID || owner.HasEmail() || owner.EmailVerified() {
		t.Fatalf("the session of the account: %+v, %v", owner, err)
	}
	if again, err := m.Persons.SignIn(t.Context(), identity.Client{}, owner.Email, password); err != nil || again.Account.ID != in.Account.ID {
		t.Errorf("the password with the address that it got: %v", err)
	}
	says(t, strings.Join(auditLog(t, m.Service, owner.ID), "\n"), []string{"email_lost||its owner proved", "sign in as " + owner.Email}, nil)
}

// An OpenID Connect sign-in with a verified address takes it from an account that holds nothing by it.
func TestUnverified_OIDC(t *testing.T) {
	t.Parallel()
	for name, c := range holders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			m := newMailing(t, i.config)
			in := c.signUp(t, m)
			got, err := i.signIn(t, m.Service, map[string]any{"email": squatted})
			if !c.loses {
				is(t, "the sign-in", err, account.ErrEmailTaken)
				return
			}
			if err != nil || got.Account.ID == in.Account.ID || got.Account.Email != squatted || !got.Account.EmailVerified() {
				t.Fatalf("%+v, %v", got, err)
			}
			lost(t, m, in)
		})
	}
}

// A mailed link to a new password leads to an account that a holder who never proved the address cannot enter.
func TestUnverified_Reset(t *testing.T) {
	t.Parallel()
	for name, c := range holders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			in := c.signUp(t, m)
			ok(t, m.Persons.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, squatted, ""))
			if name == "an operator who disabled it" {
				if to := m.settle(t); len(to) > 0 {
					t.Errorf("mails went to %q", to)
				}
				return
			}
			reset, err := m.Persons.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: m.token(t), NewPassword: newPassword})
			if err != nil || reset.Fresh != c.loses {
				t.Fatalf("a new account: %+v, %v", reset, err)
			}
			got, err := m.Persons.SignIn(t.Context(), identity.Client{}, squatted, newPassword)
			if err != nil || (got.Account.ID != in.Account.ID) != c.loses || !got.Account.EmailVerified() {
				t.Fatalf("%+v, %v", got, err)
			}
			if c.loses {
				lost(t, m, in)
				return
			}
			is(t, "a session after the reset", call2(m.Sessions.Get(t.Context(), in.Token)), identity.ErrSignedOut)
		})
	}
}

// An operator's link resets the account itself and proves no address, as it was not mailed.
func TestUnverified_OperatorsLink(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	in := m.signUpUnverified(t, identity.Client{}, squatted)
	token, entry := account.NewLinkToken(), account.AuditEntry{AccountID: in.Account.ID, Action: account.ResetLinkMade}
	entry.ID, entry.OccurredAt, entry.Actor = in.Session.ID, m.Store.Now(), account.Actor{Operator: true}
	ok(t, m.Store.InsertResetToken(t.Context(), in.Account, account.HashToken(token), m.Store.Now().Add(account.LinkLifetime), &entry))
	if reset, err := m.Persons.ResetPassword(t.Context(), identity.Client{}, identity.ResetRequest{Token: token, NewPassword: newPassword}); err != nil || reset.Fresh {
		t.Fatalf("a new account: %+v, %v", reset, err)
	}
	if got, err := m.Persons.SignIn(t.Context(), identity.Client{}, squatted, newPassword); err != nil || got.Account.ID != in.Account.ID || got.Account.EmailVerified() {
		t.Errorf("%+v, %v", got, err)
	}
}

// However many prove an address at once, it has one account in the end.
func TestUnverified_Concurrent(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	m := newMailing(t, i.config)
	in := m.signUpUnverified(t, identity.Client{}, squatted)
	token := m.request(t, squatted)
	var done sync.WaitGroup
	for range 4 {
		b := begin(t, m.Service)
		code := i.grant(b, map[string]any{"email": squatted})
		done.Go(func() {
			if _, err := m.Persons.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, code); err != nil && !errors.Is(err, account.ErrEmailTaken) {
				t.Error(err)
			}
		})
		done.Go(func() {
			if err := m.reset(t, token); err != nil && !errors.Is(err, identity.ErrResetToken) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	lost(t, m, in)
	const counts = `SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE email = $1)) FROM accounts`
	equal(t, "accounts, and those with the address", pgtest.LookUp[string](t, m.Store, counts, squatted), "2 1")
}
