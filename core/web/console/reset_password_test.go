package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

func TestForgotPassword(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *identity.Config) { c.MailQueued = func() {} })
	s.signedUp(t, "ann@example.com")
	const page = "/console/forgot-password"
	stranger := s.browser(t)
	if link := stranger.get("/console/sign-in").is(http.StatusOK, "Forgot your password?").link(page); link != page {
		t.Errorf("the sign-in page leads to %q", link)
	}
	stranger.get(page).is(http.StatusOK, "We send you a link")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		stranger.post(page, "email", email).is(http.StatusOK, "If an account has the address "+email+", a mail with a link is on its way to it.")
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM mails`); n != 2 {
		t.Errorf("%d mails are queued", n)
	}
	stranger.post(page, "email", "ann").is(http.StatusBadRequest).tied("email", "E-mail address must be an e-mail address such as name@example.com.")
	stranger.post(page, "email", "ann@example.com\r\nBcc: eve@example.com").is(http.StatusBadRequest)
}

func TestForgotPassword_NoMail(t *testing.T) {
	t.Parallel()
	stranger := start(t).browser(t)
	stranger.get("/console/forgot-password").is(http.StatusOK, "This service sends no mail. Ask its operator for a link")
	stranger.post("/console/forgot-password", "email", "ann@example.com").is(http.StatusBadRequest).alerts("This service sends no mail.")
}

func TestForgotPassword_Limit(t *testing.T) {
	t.Parallel()
	stranger := start(t, func(c *identity.Config) { c.MailQueued, c.Limits.MailsPerAddress = func() {}, 1 }).browser(t)
	stranger.post("/console/forgot-password", "email", "ann@example.com").is(http.StatusOK)
	a := stranger.post("/console/forgot-password", "email", "ann@example.com").is(http.StatusTooManyRequests)
	a.alerts("There were too many attempts.")
	if a.header.Get("Retry-After") == "" {
		t.Error("the page does not say when to try again")
	}
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s := start(t, typed)
	ann, bob := s.signedUp(t, "ann@example.com"), s.signedUp(t, "bob@example.com")
	pgtest.Exec(t, s.store, `UPDATE accounts SET email_verified_at = now()`)
	token := account.NewLinkToken()
	if err := s.store.InsertResetToken(t.Context(), s.ann(t), account.HashToken(token), time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	const page, next = "/console/reset-password", "staple correct horse"
	for range 2 { // opening the link uses nothing up
		if a := bob.get(page+"?token="+token).is(http.StatusOK, "Choose another password"); a.field("token") != token {
			t.Errorf("the form has the token %q", a.field("token"))
		}
	}
	a := bob.post(page, "token", token, "newPassword", "short").is(http.StatusBadRequest)
	a.tied("newPassword", "The new password must have 8 to 128 characters.")
	if a.field("token") != token {
		t.Errorf("after a fault the form has the token %q", a.field("token"))
	}
	ann.get("/console").is(http.StatusOK)
	bob.post(page, "token", token, "newPassword", next).leadsTo("/console/sign-in?done=password-reset")
	bob.get("/console/sign-in?done=password-reset").is(http.StatusOK, "The password is changed. Sign in with it, and look through your keys: they work as before.")
	ann.get("/console").leadsTo("/console/sign-in?done=ended&next=%2Fconsole")
	bob.post(page, "token", token, "newPassword", next).is(http.StatusBadRequest).alerts("The link was used, has expired or is not complete.")
	bob.get(page).is(http.StatusOK, "Choose another password", "Ask for another")
	ann.post("/console/sign-in", "email", "ann@example.com", "password", password).is(http.StatusUnauthorized)
	ann.post("/console/sign-in", "email", "ann@example.com", "password", next).leadsTo("/console")
	ann.get("/console/audit").is(http.StatusOK, "Password reset", "by a link; all sessions ended")
}

// The page of the link lists the other ways to sign in, and ends them only where the box is ticked, which it is not by itself.
func TestResetPassword_WaysToSignIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields []string
		left   int
	}{{nil, 2}, {[]string{"unlinkAccounts", "1"}, 0}} {
		s := start(t, typed)
		s.signedUp(t, "ann@example.com")
		pgtest.Exec(t, s.store, `UPDATE accounts SET email_verified_at = now()`)
		token := account.NewLinkToken()
		if err := s.store.InsertResetToken(t.Context(), s.ann(t), account.HashToken(token), time.Now().Add(time.Hour), nil); err != nil {
			t.Fatal(err)
		}
		const page, next, other = "/console/reset-password", "staple correct horse", "Other ways to sign in"
		somebody := s.browser(t)
		if a := somebody.get(page + "?token=" + token).is(http.StatusOK); strings.Contains(a.text(), other) {
			t.Error("ways are listed where there are none")
		}
		pgtest.Exec(t, s.store, `INSERT INTO identities SELECT v.*, id, now() FROM accounts, (VALUES ('eip155', $1), ('https://old.example', 'ann <b>')) v`,
			strings.ToLower(linkedWallet))
		a := somebody.get(page+"?token="+token).is(http.StatusOK, other, "Wallet", linkedWallet, "https://old.example", "ann <b>", "End these ways to sign in")
		if a.checked() != "" {
			t.Error("the box is ticked")
		}
		form := append([]string{"token", token}, c.fields...)
		a = somebody.post(page, append(form, "newPassword", "short")...).is(http.StatusBadRequest, other)
		if (a.checked() == "unlinkAccounts") != (c.left == 0) {
			t.Error("a fault changes the box")
		}
		somebody.post(page, append(form, "newPassword", next)...).leadsTo("/console/sign-in?done=password-reset")
		if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM identities`); n != c.left {
			t.Errorf("with %q %d ways are left", c.fields, n)
		}
	}
}
