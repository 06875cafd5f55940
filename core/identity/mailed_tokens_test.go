package identity_test

import (
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// mailedToken is a kind of token that mails have in their links.
type mailedToken struct {
	// ask has one mailed to ann@example.com, and use uses it.
	ask   func(t *testing.T, m *mailing) string
	use   func(t *testing.T, m *mailing, token string) error
	table string
	// refused is what use returns for any other token.
	refused error
}

var mailedTokens = map[string]mailedToken{
	"a link to a new password": {
		func(t *testing.T, m *mailing) string { t.Helper(); return m.request(t, "ann@example.com") },
		func(t *testing.T, m *mailing, token string) error { t.Helper(); return m.reset(t, token) },
		"reset_tokens", identity.ErrResetToken,
	},
	"a link that verifies an address": {
		func(t *testing.T, m *mailing) string { t.Helper(); return m.askToVerify(t) },
		func(t *testing.T, m *mailing, token string) error {
			t.Helper()
			return call(m.Persons.VerifyEmail(t.Context(), identity.Client{}, token, ""))
		},
		"link_tokens", identity.ErrLink,
	},
	"the same link in a browser": {
		func(t *testing.T, m *mailing) string { t.Helper(); return m.askToVerify(t) },
		func(t *testing.T, m *mailing, token string) error {
			t.Helper()
			return call2(m.Persons.FollowLink(t.Context(), identity.Client{}, token, password, ""))
		},
		"link_tokens", identity.ErrLink,
	},
}

// askToVerify asks for a link that verifies Ann's address, and returns its token.
func (m *mailing) askToVerify(t *testing.T) string {
	t.Helper()
	ok(t, m.Persons.SendVerificationEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, "ann@example.com", "/app"))
	return tokenOf(t, <-m.mails)
}

// Each other token is refused and changes nothing. Of any number of concurrent uses of a token one succeeds, and ends the others of the
// account.
func TestMailedTokens(t *testing.T) {
	t.Parallel()
	for name, kind := range mailedTokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			in := m.signUpUnverified(t, identity.Client{}, "ann@example.com")
			hash := account.HashToken(kind.ask(t, m))
			expired := kind.ask(t, m)
			pgtest.Exec(t, m.Store, `UPDATE `+kind.table+` SET expires_at = now() - interval '1 second'`)
			for what, token := range map[string]string{
				"none": "", "a guess": account.NewLinkToken(), "NUL": "\x00", "a megabyte": strings.Repeat("x", 1<<20), "a session": in.Token, "the hash": string(hash[:]),
				"a part": kind.ask(t, m)[:42], "another case": strings.ToLower(kind.ask(t, m)) + "A", "one that has expired": expired,
			} {
				is(t, what, kind.use(t, m, token), kind.refused)
			}
			for other, of := range mailedTokens {
				if of.table != kind.table {
					is(t, other, kind.use(t, m, of.ask(t, m)), kind.refused)
				}
			}
			is(t, "the session after that", call2(m.Sessions.Get(t.Context(), in.Token)), nil)
			equal(t, "verified addresses", pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM accounts WHERE email_verified_at IS NOT NULL`), 0)
			earlier, token := kind.ask(t, m), kind.ask(t, m)
			mustSucceedOnce(t, kind.refused, func(int) error { return kind.use(t, m, token) })
			is(t, "an earlier one", kind.use(t, m, earlier), kind.refused)
		})
	}
}

// Tokens cannot be tried without end, and a wrong one costs no hash.
func TestMailedTokens_Guesses(t *testing.T) {
	t.Parallel()
	for name, kind := range mailedTokens {
		m := &mailing{Service: newService(t, func(c *identity.Config) { c.Limits.SignInPerIP, c.Passwords = 3, &account.Passwords{} })} // it has no turn to give
		for range 3 {
			is(t, name, kind.use(t, m, account.NewLinkToken()), kind.refused)
		}
		isLimited(t, name+", the fourth guess", kind.use(t, m, account.NewLinkToken()), true)
	}
}

// A token of an account that is disabled, has ended or has another password is refused. A password that breaks the rule leaves it good.
func TestResetPassword_Accounts(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	operator := account.Actor{Operator: true}
	for _, email := range []string{"disabled@example.com", "ended@example.com", "ann@example.com"} {
		m.signUp(t, identity.Client{}, email)
	}
	disabled, ended, before := m.request(t, "disabled@example.com"), m.request(t, "ended@example.com"), m.request(t, "ann@example.com")
	pgtest.Exec(t, m.Store, `UPDATE accounts SET disabled_at = now() WHERE email LIKE 'disabled%'`)
	pgtest.Exec(t, m.Store, `UPDATE accounts SET deleted_at = now() WHERE email LIKE 'ended%'`)
	ok(t, m.Store.SetPassword(t.Context(), "ann@example.com", "hash", operator, time.Now()))
	for what, token := range map[string]string{"disabled": disabled, "ended": ended, "after another change of the password": before} {
		is(t, what, m.reset(t, token), identity.ErrResetToken)
	}
	token := m.request(t, "ann@example.com")
	isInvalid(t, "newPassword", call(m.Persons.ResetPassword(t.Context(), identity.Client{}, identity.ResetRequest{Token: token, NewPassword: "short"})))
	is(t, "after a short password", m.reset(t, token), nil)
}

// Somebody else's session does not stand in for the account's password.
func TestFollowLink_OtherSession(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.signUpUnverified(t, identity.Client{}, "ann@example.com")
	other := m.signUp(t, identity.Client{}, "bob@example.com")
	token := m.askToVerify(t)
	is(t, "signed in to another account", call2(m.Persons.FollowLink(t.Context(), identity.Client{Token: other.Token}, token, "", "")), identity.ErrPassword)
}
