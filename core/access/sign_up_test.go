package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/access"
	"intents.internal/core/account"
)

// A sign-up is answered alike whether or not the address has an account, and its link wants the password that was chosen.
func TestSignUp_ByMail(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	home := access.Visitor{IP: "203.0.113.7", UserAgent: "Home/1.0"}
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
		if _, err := m.SignIn(t.Context(), home, "ann@example.com", given); !errors.Is(err, access.ErrCredentials) {
			t.Errorf("%q before the link was opened: %v", given, err)
		}
	}
	if err := m.SendVerificationEmail(t.Context(), home, "ann@example.com", ""); err != nil {
		t.Fatal(err)
	}
	reminder := tokenOf(t, <-m.mails)
	for wrong, want := range map[string]error{"": access.ErrPassword, "a wrong password": access.ErrPassword} {
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
		if _, err := m.VerifyEmail(t.Context(), home, token, ""); !errors.Is(err, access.ErrLink) {
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

// What a name or an address brings into a mail: nothing but the address itself, which must be in ASCII.
func TestSignUp_HostileText(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, name := range []string{"Ann\r\nBcc: eve@example.com", "<img src=x>", "http://evil.example/ {{.URL}}"} {
		email := "person-" + string(rune('a'+len(name)%26)) + "@example.com"
		if _, err := m.SignUp(t.Context(), access.Visitor{}, name, email, password, ""); err != nil {
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
		_, err := m.SignUp(t.Context(), access.Visitor{}, "", email, password, "")
		if _, invalid := errors.AsType[*account.InvalidError](err); invalid == taken || taken && err != nil {
			t.Errorf("%q: %v", email, err)
		}
	}
	if parts, err := (<-m.mails).Parts(); err != nil || !strings.Contains(parts["text/plain"], "kate@xn--bcher-kva.example") {
		t.Errorf("the mail to an international domain: %v\n%s", err, parts["text/plain"])
	}
}
