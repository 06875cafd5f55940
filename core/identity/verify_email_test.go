package identity_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/embedded"
)

// register signs up as a browser does where mail is configured, and returns the mail.
func (m *mailing) register(t *testing.T, v identity.Client, email string) (*identity.SignedIn, embedded.Mail) {
	t.Helper()
	in, err := m.SignUp(t.Context(), v, "Ann", email, password, "")
	if err != nil {
		t.Fatal(err)
	}
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

// Each token is refused, and nothing is changed by it.
func TestFollowLink_Tokens(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	in, first := m.register(t, identity.Client{}, "ann@example.com")
	other := m.signUp(t, identity.Client{}, "bob@example.com")
	ask := func() string {
		if err := m.SendVerificationEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, "ann@example.com", "/app"); err != nil {
			t.Fatal(err)
		}
		return tokenOf(t, <-m.mails)
	}
	for what, token := range map[string]func() string{
		"none": func() string { return "" }, "a guess": account.NewLinkToken, "NUL": func() string { return "\x00" }, "a part": func() string { return ask()[:42] },
		"a session": func() string { return other.Token }, "a link to a new password": func() string { return m.request(t, "bob@example.com") },
		"one that has expired": func() string {
			token := ask()
			pgtest.Exec(t, m.Store, `UPDATE link_tokens SET expires_at = now() - interval '1 second'`)
			return token
		},
		"the hash": func() string { hash := account.HashToken(ask()); return string(hash[:]) },
	} {
		value := token()
		_, _, followed := m.FollowLink(t.Context(), identity.Client{}, value, password, "")
		_, used := m.VerifyEmail(t.Context(), identity.Client{}, value, "")
		if !errors.Is(followed, identity.ErrLink) || !errors.Is(used, identity.ErrLink) {
			t.Errorf("%s: %v, %v", what, followed, used)
		}
	}
	if n := pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM accounts WHERE email_verified_at IS NOT NULL`); n != 1 {
		t.Errorf("%d addresses are verified, want bob's", n)
	}
	// Somebody else's session does not stand in for the account's password, and one of any number of concurrent uses succeeds.
	token, stranger := ask(), identity.Client{Token: other.Token}
	if _, _, err := m.FollowLink(t.Context(), stranger, token, "", ""); !errors.Is(err, identity.ErrPassword) {
		t.Errorf("signed in to another account: %v", err)
	}
	mustSucceedOnce(t, identity.ErrLink, func(int) error {
		_, err := m.VerifyEmail(t.Context(), identity.Client{}, token, "")
		return err
	})
	if _, err := m.VerifyEmail(t.Context(), identity.Client{}, tokenOf(t, first), ""); !errors.Is(err, identity.ErrLink) {
		t.Errorf("an earlier link: %v", err)
	}
	if owner, err := m.Store.AccountByID(t.Context(), in.Account.ID); err != nil || !owner.EmailVerified() {
		t.Errorf("%+v, %v", owner, err)
	}
}

// Guessing is limited, and mails are few however many are asked for.
func TestVerification_Floods(t *testing.T) {
	t.Parallel()
	m := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress, c.Limits.SignInPerIP = 5, 3 })
	in := m.signUp(t, identity.Client{}, "ann@example.com")
	m.signUpUnverified(t, identity.Client{}, "new@example.com")
	for n := range 4 {
		_, err := m.VerifyEmail(t.Context(), identity.Client{IP: "203.0.113.9"}, account.NewLinkToken(), "")
		if _, limited := errors.AsType[*identity.LimitedError](err); limited != (n == 3) || n < 3 && !errors.Is(err, identity.ErrLink) {
			t.Errorf("guess %d: %v", n, err)
		}
	}
	asked, changes := 0, 0
	for range 500 {
		if m.SendVerificationEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, "new@example.com", "") == nil {
			asked++
		}
		if m.ChangeEmail(t.Context(), identity.Client{IP: "203.0.113.7"}, own(in), "victim@example.com", "") == nil {
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
	_, owner, err := m.Session(t.Context(), in.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ChangeEmail(t.Context(), here, &identity.Principal{Session: in.Session, Person: owner}, "New@example.com", "/console/keys"); err != nil {
		t.Fatal(err)
	}
	old := <-m.mails
	if parts, _ := old.Parts(); !cmp.Equal(old.To, []string{"ann@example.com"}) || !strings.Contains(parts["text/plain"], "new@example.com") || !strings.Contains(old.Link(), "callbackURL=%2Fconsole%2Fkeys") {
		t.Errorf("to %q:\n%s", old.To, parts["text/plain"])
	}
	for _, purpose := range []account.LinkPurpose{account.ConfirmEmailChange, account.ChangeEmail} {
		token := tokenOf(t, old)
		if _, err := m.VerifyEmail(t.Context(), identity.Client{}, token, ""); !errors.Is(err, identity.ErrLinkSignedOut) {
			t.Errorf("%s without a session: %v", purpose, err)
		}
		if l, _, err := m.FollowLink(t.Context(), here, token, "", "/console/keys"); err != nil || l.Purpose != purpose {
			t.Fatalf("%+v, %v", l, err)
		}
		if _, _, err := m.FollowLink(t.Context(), here, token, "", ""); !errors.Is(err, identity.ErrLink) {
			t.Errorf("%s again: %v", purpose, err)
		}
		if purpose == account.ConfirmEmailChange {
			if old = <-m.mails; !cmp.Equal(old.To, []string{"new@example.com"}) {
				t.Errorf("the second mail goes to %q", old.To)
			}
		}
	}
	if _, owner, err := m.Session(t.Context(), in.Token); err != nil || owner.Email != "new@example.com" || !owner.EmailVerified() {
		t.Errorf("%+v, %v", owner, err)
	}
	log := auditLog(t, m.Service, in.Account.ID)
	want := []string{"email_change_requested||to new@example.com|203.0.113.7 ", "email_changed||ann@example.com → new@example.com|203.0.113.7 "}
	if diff := cmp.Diff(want, log[len(log)-2:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
	change := func(email string) error { return m.ChangeEmail(t.Context(), here, own(in), email, "") }
	for _, email := range []string{"kept@example.com", "free@example.com"} {
		if err := change(email); err != nil {
			t.Errorf("%s: %v", email, err)
		}
		if got := <-m.mails; !cmp.Equal(got.To, []string{email}) || strings.Contains(got.Link(), "token") != (email == "free@example.com") {
			t.Errorf("%q is mailed %s", got.To, got.Link())
		}
	}
	if err := change(squatted); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.FollowLink(t.Context(), identity.Client{}, tokenOf(t, <-m.mails), password, ""); err != nil {
		t.Fatal(err)
	}
	lost(t, m, squatter)
	for email, field := range map[string]string{"ann@example.com": "newEmail", "k\u0430te@example.com": "newEmail", "a@b.invalid": "newEmail", "": "newEmail"} {
		if invalid, ok := errors.AsType[*account.InvalidError](change(email)); !ok || invalid.Field != field {
			t.Errorf("%q: %v", email, invalid)
		}
	}
	if invalid, ok := errors.AsType[*account.InvalidError](m.ChangeEmail(t.Context(), here, own(in), "x@example.com", "https://evil.example")); !ok || invalid.Field != "callbackURL" {
		t.Errorf("another site: %v", invalid)
	}
	stale := *in.Session
	stale.CreatedAt = stale.CreatedAt.Add(-11 * time.Minute)
	if err := m.ChangeEmail(t.Context(), here, &identity.Principal{Session: &stale, Person: in.Account}, "x@example.com", ""); !errors.Is(err, identity.ErrSessionNotFresh) {
		t.Errorf("an old session: %v", err)
	}
}
