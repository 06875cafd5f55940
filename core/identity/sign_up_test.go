package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
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
		is(t, given+" before the link was opened", call(m.Persons.SignIn(t.Context(), home, "ann@example.com", given)), identity.ErrCredentials)
	}
	reminder := m.askToVerify(t)
	for _, wrong := range []string{"", "a wrong password"} {
		is(t, "the link with the password "+wrong, call2(m.Persons.FollowLink(t.Context(), home, tokenOf(t, got), wrong, "")), identity.ErrPassword)
	}
	l, signedIn, err := m.Persons.FollowLink(t.Context(), home, tokenOf(t, got), password, "")
	if err != nil || l.Purpose != account.VerifyEmail || signedIn == nil {
		t.Fatalf("%+v, %+v, %v", l, signedIn, err)
	}
	if _, owner, err := m.Sessions.Get(t.Context(), signedIn.Token); err != nil || owner.ID != in.Account.ID || !owner.EmailVerified() {
		t.Errorf("%+v, %v", owner, err)
	}
	for _, token := range []string{tokenOf(t, got), tokenOf(t, second), reminder} {
		is(t, "the link again", call(m.Persons.VerifyEmail(t.Context(), home, token, "")), identity.ErrLink)
	}
	want := []string{"signed_up|||203.0.113.7 Home/1.0", "email_verified||ann@example.com|203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0"}
	equal(t, "the audit log", auditLog(t, m.Service, in.Account.ID), want)
	if _, third := m.register(t, home, "ann@example.com"); third.Link() != "http://intents.example/console/sign-in" {
		t.Errorf("who has an account is told to open %s", third.Link())
	}
	withoutMail := newServiceOn(t, roomsOf(m.Service), withPasswords(t))
	_, _ = m.register(t, home, "bob@example.com")
	is(t, "where no mail is configured any more", call(withoutMail.Persons.SignIn(t.Context(), home, "bob@example.com", password)), nil)
}

// However often strangers sign up with an address before and after its owner, the link of the owner's sign-up wants the owner's password
// and name, and gives them to the account. No other sign-up leaves a way in.
func TestSignUp_Squatted(t *testing.T) {
	t.Parallel()
	for name, enter := range map[string]bool{
		"nobody entered": false, "a stranger entered while no mail was configured": true, "a stranger entered, and nothing else is left of it": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			register := func(name, password string) embedded.Mail {
				ok(t, call(m.Persons.SignUp(t.Context(), identity.Client{}, name, squatted, password, "")))
				return <-m.mails
			}
			before := register("Eve", "the password of eve")
			var stranger *identity.SignedIn
			if enter {
				withoutMail := must(newServiceOn(t, roomsOf(m.Service), withPasswords(t)).Persons.SignIn(t.Context(), identity.Client{}, squatted, "the password of eve"))(t)
				stranger = withoutMail
			}
			pruned := strings.HasSuffix(name, "left of it")
			if pruned { // the audit log, after a year, and the session, after a week
				pgtest.Exec(t, m.Store, `ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only`)
				pgtest.Exec(t, m.Store, `DELETE FROM audit_log`)
				pgtest.Exec(t, m.Store, `DELETE FROM sessions`)
			}
			own, after := register("Ann", password), register("Eve", "the password of eve")
			is(t, "the owner's link with the stranger's password", call2(m.Persons.FollowLink(t.Context(), identity.Client{}, tokenOf(t, own), "the password of eve", "")), identity.ErrPassword)
			_, in, err := m.Persons.FollowLink(t.Context(), identity.Client{}, tokenOf(t, own), password, "")
			if err != nil || in.Account.Email != squatted || in.Account.Name != "Ann" || !in.Account.EmailVerified() {
				t.Fatalf("the owner's link: %+v, %v", in, err)
			}
			for what, token := range map[string]string{"the link before": tokenOf(t, before), "the link after": tokenOf(t, after)} {
				is(t, what, call(m.Persons.VerifyEmail(t.Context(), identity.Client{}, token, "")), identity.ErrLink)
			}
			is(t, "the stranger's password", call(m.Persons.SignIn(t.Context(), identity.Client{}, squatted, "the password of eve")), identity.ErrCredentials)
			if again, err := m.Persons.SignIn(t.Context(), identity.Client{}, squatted, password); err != nil || again.Account.ID != in.Account.ID {
				t.Errorf("the owner's password: %v", err)
			}
			if !enter {
				equal(t, "accounts", pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM accounts`), 1)
				return
			}
			if pruned {
				if in.Account.ID == stranger.Account.ID {
					t.Error("the owner of the address has the stranger's account")
				}
				return
			}
			_, theirs, err := m.Sessions.Get(t.Context(), stranger.Token)
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
	ok(t, call(m.Persons.SignUp(t.Context(), identity.Client{}, "Eve", squatted, "the password of eve", "")))
	<-m.mails
	_, own := m.register(t, identity.Client{}, squatted)
	ok(t, call(m.Persons.VerifyEmail(t.Context(), identity.Client{}, tokenOf(t, own), "")))
	for given, want := range map[string]error{"the password of eve": identity.ErrCredentials, password: nil} {
		is(t, given, call(m.Persons.SignIn(t.Context(), identity.Client{}, squatted, given)), want)
	}
}

// Sign-ups that nobody confirms are removed after a week, unless somebody has entered their accounts.
func TestSignUp_Pruned(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, email := range []string{"old@example.com", "new@example.com", "entered@example.com", "asked@example.com", "verified@example.com"} {
		_, got := m.register(t, identity.Client{}, email)
		if email == "verified@example.com" {
			ok(t, call(m.Persons.VerifyEmail(t.Context(), identity.Client{}, tokenOf(t, got), "")))
		}
	}
	ok(t, call(newServiceOn(t, roomsOf(m.Service), withPasswords(t)).Persons.SignIn(t.Context(), identity.Client{}, "entered@example.com", password)))
	m.settle(t)
	pgtest.Exec(t, m.Store, `UPDATE link_tokens SET expires_at = now() - interval '1 second'`)
	ok(t, m.Persons.SendVerificationEmail(t.Context(), identity.Client{}, "asked@example.com", ""))
	m.settle(t)
	pgtest.Exec(t, m.Store, `UPDATE accounts SET created_at = created_at - interval '8 days' WHERE email <> 'new@example.com'`)
	removed, err := m.rooms.Retention.Prune(t.Context(), m.Store.Now(), retention.Retention{})
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
		ok(t, call(m.Persons.SignUp(t.Context(), identity.Client{}, name, email, password, "")))
		got := <-m.mails
		parts, err := got.Parts()
		if text := string(got.Data) + parts["text/plain"] + parts["text/html"]; err != nil || strings.Contains(text, "eve@") || strings.Contains(text, "evil") || strings.Contains(text, "<img") {
			t.Errorf("the name %q is in the mail: %v\n%s", name, err, text)
		}
	}
	isInvalid(t, "email", call(m.Persons.SignUp(t.Context(), identity.Client{}, "", "k\u0430te@example.com", password, "")))
	ok(t, call(m.Persons.SignUp(t.Context(), identity.Client{}, "", "kate@xn--bcher-kva.example", password, "")))
	if parts, err := (<-m.mails).Parts(); err != nil || !strings.Contains(parts["text/plain"], "kate@xn--bcher-kva.example") {
		t.Errorf("the mail to an international domain: %v\n%s", err, parts["text/plain"])
	}
}
