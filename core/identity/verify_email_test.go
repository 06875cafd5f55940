package identity_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/embedded"
)

// register signs up as a browser does where mail is configured, and returns the mail.
func (m *mailing) register(t *testing.T, v identity.Client, email string) (*identity.SignedIn, embedded.Mail) {
	t.Helper()
	in := must(m.Persons.SignUp(t.Context(), v, "Ann", email, password, ""))(t)
	return in, <-m.mails
}

func tokenOf(t *testing.T, m embedded.Mail) string {
	t.Helper()
	link, err := url.Parse(m.Link())
	if err != nil || link.Path != identity.LinkPath || len(link.Query().Get("token")) != 43 {
		t.Fatalf("the link is %s: %v", link, err)
	}
	return link.Query().Get("token")
}

// Mails are few however many are asked for.
func TestVerification_Floods(t *testing.T) {
	t.Parallel()
	m := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress = 5 })
	in := m.signUp(t, identity.Client{}, "ann@example.com")
	m.signUpUnverified(t, identity.Client{}, "new@example.com")
	asked, changes := 0, 0
	for range 50 {
		if m.Persons.SendVerificationEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, "new@example.com", "") == nil {
			asked++
		}
		if m.Persons.ChangeEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, own(in), "victim@example.com", "") == nil {
			changes++
		}
	}
	if asked != 5 || changes != 5 {
		t.Errorf("%d and %d mails were asked for, want 5 each", asked, changes)
	}
}

// An address changes once both the old one and the new one have confirmed it; GET with a link's token alone changes nothing.
func TestChangeEmail(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	in := m.signUp(t, identity.Client{}, "ann@example.com")
	here := identity.Client{IP: "203.0.113.7", Token: in.Token}
	ok(t, m.Persons.ChangeEmail(t.Context(), here, must(m.Sessions.Principal(t.Context(), in.Token))(t), "New@example.com", "/console/keys"))
	old := <-m.mails
	if parts, _ := old.Parts(); !cmp.Equal(old.To, []string{"ann@example.com"}) || !strings.Contains(parts["text/plain"], "new@example.com") || !strings.Contains(old.Link(), "callbackURL=%2Fconsole%2Fkeys") {
		t.Errorf("to %q:\n%s", old.To, parts["text/plain"])
	}
	for _, purpose := range []account.LinkPurpose{account.ConfirmEmailChange, account.ChangeEmail} {
		token := tokenOf(t, old)
		if _, err := m.Persons.VerifyEmail(t.Context(), identity.Client{}, token, ""); !errors.Is(err, identity.ErrLinkSignedOut) {
			t.Errorf("%s without a session: %v", purpose, err)
		}
		if l, _, err := m.Persons.FollowLink(t.Context(), here, token, "", "/console/keys"); err != nil || l.Purpose != purpose {
			t.Fatalf("%+v, %v", l, err)
		}
		if _, _, err := m.Persons.FollowLink(t.Context(), here, token, "", ""); !errors.Is(err, identity.ErrLink) {
			t.Errorf("%s again: %v", purpose, err)
		}
		if purpose == account.ConfirmEmailChange {
			if old = <-m.mails; !cmp.Equal(old.To, []string{"new@example.com"}) {
				t.Errorf("the second mail goes to %q", old.To)
			}
		}
	}
	if _, owner, err := m.Sessions.Get(t.Context(), in.Token); err != nil || owner.Email != "new@example.com" || !owner.EmailVerified() {
		t.Errorf("%+v, %v", owner, err)
	}
	log := auditLog(t, m.Service, in.Account.ID)
	want := []string{"email_change_requested||to new@example.com|203.0.113.7 ", "email_changed||ann@example.com → new@example.com|203.0.113.7 "}
	equal(t, "the audit log", log[len(log)-2:], want)
}

// A new address that an account keeps is told so by mail, one that an account does not keep changes hands, and an unverified account needs no
// old address but a fresh session.
func TestChangeEmail_Taken(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	in := m.signUpUnverified(t, identity.Client{}, "ann@example.com")
	here := identity.Client{IP: "203.0.113.7", Token: in.Token}
	m.signUp(t, identity.Client{}, "kept@example.com")
	squatter := m.signUpUnverified(t, identity.Client{}, squatted)
	change := func(email string) error { return m.Persons.ChangeEmail(t.Context(), here, own(in), email, "") }
	for _, email := range []string{"kept@example.com", "free@example.com"} {
		if err := change(email); err != nil {
			t.Errorf("%s: %v", email, err)
		}
		if got := <-m.mails; !cmp.Equal(got.To, []string{email}) || strings.Contains(got.Link(), "token") != (email == "free@example.com") {
			t.Errorf("%q is mailed %s", got.To, got.Link())
		}
	}
	ok(t, change(squatted))
	ok(t, call2(m.Persons.FollowLink(t.Context(), identity.Client{}, tokenOf(t, <-m.mails), password, "")))
	lost(t, m, squatter)
	isInvalid(t, "newEmail", change("ann@example.com"))
	isInvalid(t, "newEmail", change("a@b.invalid"))
	isInvalid(t, "callbackURL", m.Persons.ChangeEmail(t.Context(), here, own(in), "x@example.com", "https://evil.example"))
	for _, verified := range []string{"NULL", "now()"} {
		pgtest.Exec(t, m.Store, `UPDATE accounts SET email_verified_at = `+verified)
		pgtest.Exec(t, m.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
		old := must(m.Sessions.Principal(t.Context(), here.Token))(t)
		is(t, "an old session", m.Persons.ChangeEmail(t.Context(), here, old, "x@example.com", ""), identity.ErrPasswordNeeded)
		is(t, "with the password", m.Persons.ChangeEmail(t.Context(), with(here, password), old, "x@example.com", ""), nil)
	}
}
