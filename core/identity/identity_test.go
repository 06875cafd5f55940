package identity_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// newcomer is a person who signs in without a password.
type newcomer struct {
	config func(*identity.Config)
	// signIn signs in, later with another e-mail address where the way has one.
	signIn func(s *identity.Service, client identity.Client, later bool) (*identity.SignedIn, error)
	// name and email are those of the person's account, and how is the way in the audit log.
	name, email, how string
}

var newcomers = map[string]func(t *testing.T) newcomer{
	"a wallet": func(t *testing.T) newcomer {
		t.Helper()
		w := newWallet(t)
		return newcomer{func(*identity.Config) {}, func(s *identity.Service, client identity.Client, _ bool) (*identity.SignedIn, error) {
			message := w.message(nonce(t, s, client))
			return s.Persons.SignInWithEthereum(t.Context(), client, message, w.sign(t, message))
		}, w.address, strings.ToLower(w.address) + "@eip155.invalid", "with a wallet"}
	},
	"OpenID Connect": func(t *testing.T) newcomer {
		t.Helper()
		i := newIssuer(t)
		return newcomer{i.config, func(s *identity.Service, client identity.Client, later bool) (*identity.SignedIn, error) {
			b, claims := begin(t, s), map[string]any{}
			if later {
				claims["email"] = "other@example.com"
			}
			return s.Persons.FinishOIDC(t.Context(), client, b.flow, b.state, i.grant(b, claims))
		}, "Ann", "ann@example.com", "with Example"}
	},
}

// The first sign-in makes an account without a password where sign-up is open, and later ones find it until it ends, whatever becomes of
// the person's address.
func TestSignInIdentity(t *testing.T) {
	t.Parallel()
	for name, newcomer := range newcomers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newcomer(t)
			s := newService(t, n.config)
			shut := newServiceOn(t, roomsOf(s), n.config, func(c *identity.Config) { c.SignUpOpen = false })
			client := identity.Client{IP: "203.0.113.7"}
			is(t, "new where sign-up is closed", call(n.signIn(shut, client, false)), identity.ErrSignUpClosed)
			first, second := must(n.signIn(s, client, false))(t), must(n.signIn(s, client, true))(t)
			for _, in := range []*identity.SignedIn{first, second} {
				if _, owner, err := s.Sessions.Get(t.Context(), in.Token); err != nil || owner.ID != first.Account.ID {
					t.Errorf("the session: %v, %v", owner, err)
				}
				if a := in.Account; a.Name != n.name || a.Email != n.email || a.PasswordHash != "" {
					t.Errorf("the account: %+v", a)
				}
			}
			equal(t, "the audit log", auditLog(t, s, first.Account.ID), []string{
				"signed_up|||203.0.113.7 ", "signed_in||" + n.how + "|203.0.113.7 ", "signed_in||" + n.how + "|203.0.113.7 ",
			})
			is(t, "known where sign-up is closed", call(n.signIn(shut, client, true)), nil)
			operator := account.Actor{Operator: true}
			ok(t, s.Store.DisableAccount(t.Context(), n.email, operator, time.Now()))
			is(t, "a disabled account", call(n.signIn(s, client, true)), identity.ErrAccountDisabled)
			ok(t, s.Store.DeleteAccount(t.Context(), n.email, operator, time.Now()))
			is(t, "after the account was deleted", call(n.signIn(s, client, true)), nil)
			equal(t, "accounts", pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts WHERE deleted_at IS NULL`), 1)
		})
	}
}

// However many browsers of one new person come at once, the person gets one account, and all are signed in.
func TestSignInIdentity_Concurrent(t *testing.T) {
	t.Parallel()
	for name, newcomer := range newcomers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newcomer(t)
			s := newService(t, n.config)
			var done sync.WaitGroup
			for range 8 {
				done.Go(func() { is(t, "one of them", call(n.signIn(s, identity.Client{}, false)), nil) })
			}
			done.Wait()
			equal(t, "accounts", pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`), 1)
		})
	}
}
