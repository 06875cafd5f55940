package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/embedded"
)

// A sign-up is answered alike whether or not the address has an account, and its link wants the password that was chosen.
func TestSignUp_ByMail(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	in, got := m.register(t, home, "Ann@example.com")
	if in.Session != nil || in.Token != "" || in.Account.Email != "ann@example.com" || in.Account.EmailVerified() {
		t.Errorf("signed up: %+v", in)
	}
	again, second := m.register(t, home, "ann@example.com")
	if again.Session != nil || again.Account.ID == in.Account.ID || again.Account.Email != in.Account.Email || again.Account.Name != in.Account.Name {
		t.Errorf("signed up again: %+v", again)
	}
	if !cmp.Equal(second.To, []string{"ann@example.com"}) {
		t.Errorf("the link goes to %q", second.To)
	}
	for _, given := range []string{"a wrong password", password} {
		if _, err := m.SignIn(t.Context(), home, "ann@example.com", given); !errors.Is(err, identity.ErrCredentials) {
			t.Errorf("%q before the link was opened: %v", given, err)
		}
	}
	if err := m.SendVerificationEmail(t.Context(), home, "ann@example.com", ""); err != nil {
		t.Fatal(err)
	}
	reminder := tokenOf(t, <-m.mails)
	for wrong, want := range map[string]error{"": identity.ErrPassword, "a wrong password": identity.ErrPassword} {
		if _, _, err := m.FollowLink(t.Context(), home, tokenOf(t, got), wrong, ""); !errors.Is(err, want) {
			t.Errorf("the link with the password %q: %v", wrong, err)
		}
	}
	l, signedIn, err := m.FollowLink(t.Context(), home, tokenOf(t, got), password, "")
	if err != nil || l.Purpose != account.VerifyEmail || signedIn == nil {
		t.Fatalf("%+v, %+v, %v", l, signedIn, err)
	}
	if _, owner, err := m.Session(t.Context(), signedIn.Token); err != nil || owner.ID != in.Account.ID || !owner.EmailVerified() {
		t.Errorf("%+v, %v", owner, err)
	}
	for _, token := range []string{tokenOf(t, got), tokenOf(t, second), reminder} {
		if _, err := m.VerifyEmail(t.Context(), home, token, ""); !errors.Is(err, identity.ErrLink) {
			t.Errorf("the link again: %v", err)
		}
	}
	want := []string{"signed_up|||203.0.113.7 Home/1.0", "email_verified||ann@example.com|203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0"}
	if diff := cmp.Diff(want, auditLog(t, m.Service, in.Account.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, third := m.register(t, home, "ann@example.com"); third.Link() != "http://intents.example/console/sign-in" {
		t.Errorf("who has an account is told to open %s", third.Link())
	}
	withoutMail := newServiceOn(t, m.Store, withPasswords(t))
	_, _ = m.register(t, home, "bob@example.com")
	if _, err := withoutMail.SignIn(t.Context(), home, "bob@example.com", password); err != nil {
		t.Errorf("where no mail is configured any more: %v", err)
	}
}

// However often strangers sign up with an address before and after its owner, the link of the owner's sign-up wants the owner's password
// and name, and gives them to the account. No other sign-up leaves a way in.
func TestSignUp_Squatted(t *testing.T) {
	t.Parallel()
	for name, enter := range map[string]bool{"nobody entered": false, "a stranger entered while no mail was configured": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			register := func(name, password string) embedded.Mail {
				if _, err := m.SignUp(t.Context(), identity.Client{}, name, squatted, password, ""); err != nil {
					t.Fatal(err)
				}
				return <-m.mails
			}
			before := register("Eve", "the password of eve")
			var stranger *identity.SignedIn
			if enter {
				withoutMail, err := newServiceOn(t, m.Store, withPasswords(t)).SignIn(t.Context(), identity.Client{}, squatted, "the password of eve")
				if err != nil {
					t.Fatal(err)
				}
				stranger = withoutMail
			}
			own, after := register("Ann", password), register("Eve", "the password of eve")
			if _, _, err := m.FollowLink(t.Context(), identity.Client{}, tokenOf(t, own), "the password of eve", ""); !errors.Is(err, identity.ErrPassword) {
				t.Errorf("the owner's link with the stranger's password: %v", err)
			}
			_, in, err := m.FollowLink(t.Context(), identity.Client{}, tokenOf(t, own), password, "")
			if err != nil || in.Account.Email != squatted || in.Account.Name != "Ann" || !in.Account.EmailVerified() {
				t.Fatalf("the owner's link: %+v, %v", in, err)
			}
			for what, token := range map[string]string{"the link before": tokenOf(t, before), "the link after": tokenOf(t, after)} {
				if _, err := m.VerifyEmail(t.Context(), identity.Client{}, token, ""); !errors.Is(err, identity.ErrLink) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := m.SignIn(t.Context(), identity.Client{}, squatted, "the password of eve"); !errors.Is(err, identity.ErrCredentials) {
				t.Errorf("the stranger's password: %v", err)
			}
			if again, err := m.SignIn(t.Context(), identity.Client{}, squatted, password); err != nil || again.Account.ID != in.Account.ID {
				t.Errorf("the owner's password: %v", err)
			}
			if !enter {
				if n := pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM accounts`); n != 1 {
					t.Errorf("%d accounts", n)
				}
				return
			}
			_, theirs, err := m.Session(t.Context(), stranger.Token)
			if err != nil || theirs.ID == in.Account.ID || theirs.HasEmail() {
				t.Errorf("the stranger's session acts on %+v, %v", theirs, err)
			}
		})
	}
}

// Without a browser the link of a sign-up gives the account the password of that sign-up too.
func TestVerifyEmail_Squatted(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	if _, err := m.SignUp(t.Context(), identity.Client{}, "Eve", squatted, "the password of eve", ""); err != nil {
		t.Fatal(err)
	}
	<-m.mails
	_, own := m.register(t, identity.Client{}, squatted)
	if _, err := m.VerifyEmail(t.Context(), identity.Client{}, tokenOf(t, own), ""); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]error{"the password of eve": identity.ErrCredentials, password: nil} {
		if _, err := m.SignIn(t.Context(), identity.Client{}, squatted, given); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", given, err, want)
		}
	}
}

// Sign-ups that nobody confirms are removed after a week, unless somebody has entered their accounts.
func TestSignUp_Pruned(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, email := range []string{"old@example.com", "new@example.com", "entered@example.com", "asked@example.com", "verified@example.com"} {
		_, got := m.register(t, identity.Client{}, email)
		if email == "verified@example.com" {
			if _, err := m.VerifyEmail(t.Context(), identity.Client{}, tokenOf(t, got), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := newServiceOn(t, m.Store, withPasswords(t)).SignIn(t.Context(), identity.Client{}, "entered@example.com", password); err != nil {
		t.Fatal(err)
	}
	m.settle(t)
	pgtest.Exec(t, m.Store, `UPDATE link_tokens SET expires_at = now() - interval '1 second'`)
	if err := m.SendVerificationEmail(t.Context(), identity.Client{}, "asked@example.com", ""); err != nil {
		t.Fatal(err)
	}
	m.settle(t)
	pgtest.Exec(t, m.Store, `UPDATE accounts SET created_at = created_at - interval '8 days' WHERE email <> 'new@example.com'`)
	removed, err := m.Store.Prune(t.Context(), m.Store.Now(), postgres.Retention{})
	if err != nil || removed["accounts"] != 1 {
		t.Fatalf("%v, %v", removed, err)
	}
	const left = `SELECT string_agg(email, ' ' ORDER BY email) FROM accounts`
	if got := pgtest.LookUp[string](t, m.Store, left); got != "asked@example.com entered@example.com new@example.com verified@example.com" {
		t.Errorf("left: %s", got)
	}
	if _, got := m.register(t, identity.Client{}, "old@example.com"); tokenOf(t, got) == "" {
		t.Error("the address cannot be used again")
	}
}

// What a name or an address brings into a mail: nothing but the address itself, which must be in ASCII.
func TestSignUp_HostileText(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, name := range []string{"Ann\r\nBcc: eve@example.com", "<img src=x>", "http://evil.example/ {{.URL}}"} {
		email := "person-" + string(rune('a'+len(name)%26)) + "@example.com"
		if _, err := m.SignUp(t.Context(), identity.Client{}, name, email, password, ""); err != nil {
			t.Fatal(err)
		}
		got := <-m.mails
		parts, err := got.Parts()
		if text := string(got.Data) + parts["text/plain"] + parts["text/html"]; err != nil || strings.Contains(text, "eve@") || strings.Contains(text, "evil") || strings.Contains(text, "<img") {
			t.Errorf("the name %q is in the mail: %v\n%s", name, err, text)
		}
	}
	for email, taken := range map[string]bool{
		"\u212aate@example.com": false, "k\u0430te@example.com": false, "kate@ex\u0430mple.com": false, "kate@b\u00fccher.example": false,
		"kate\u200b@example.com": false, "kate@example.com\r\nBcc: eve@example.com": false, "Kate <kate@example.com>": false,
		"kate@xn--bcher-kva.example": true,
	} {
		_, err := m.SignUp(t.Context(), identity.Client{}, "", email, password, "")
		if _, invalid := errors.AsType[*account.InvalidError](err); invalid == taken || taken && err != nil {
			t.Errorf("%q: %v", email, err)
		}
	}
	if parts, err := (<-m.mails).Parts(); err != nil || !strings.Contains(parts["text/plain"], "kate@xn--bcher-kva.example") {
		t.Errorf("the mail to an international domain: %v\n%s", err, parts["text/plain"])
	}
}
