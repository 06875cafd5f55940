package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// The way from a forgotten password to another one. The page of the link lists the other ways to sign in and offers to end them.
func TestResetPassword(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *identity.Config) { c.MailQueued = func() {} })
	s.signedUp(t, "ann@example.com")
	somebody := s.browser(t)
	forgot := somebody.get("/console/sign-in").is(http.StatusOK, "Forgot your password?").link("/console/forgot-password")
	somebody.get(forgot).is(http.StatusOK, "We send you a link")
	somebody.post(forgot, "email", "ann").is(http.StatusBadRequest).tied("email", "E-mail address must be an e-mail address such as name@example.com.")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		somebody.post(forgot, "email", email).is(http.StatusOK, "If an account has the address "+email+", a mail with a link is on its way to it.")
	}

	pgtest.Exec(t, s.store, `UPDATE accounts SET email_verified_at = now()`)
	token := account.NewLinkToken()
	if err := s.store.Identities.InsertResetToken(t.Context(), s.ann(t), account.HashToken(token), time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	const page, next, other = "/console/reset-password", "staple correct horse", "Other ways to sign in"
	if a := somebody.get(page+"?token="+token).is(http.StatusOK, "Choose another password"); strings.Contains(a.text(), other) {
		t.Error("ways are listed where there are none")
	}
	pgtest.Exec(t, s.store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		SELECT v.*, id, now() FROM accounts, (VALUES ('eip155', $1), ('https://old.example', 'ann <b>')) v`,
		strings.ToLower(linkedWallet))
	a := somebody.get(page+"?token="+token).is(http.StatusOK, other, "Wallet", linkedWallet, "https://old.example", "ann <b>", "End these ways to sign in")
	if a.checked() != "" {
		t.Error("the box is ticked")
	}
	for _, fields := range [][]string{nil, {"unlinkAccounts", "1"}} {
		a = somebody.post(page, append([]string{"token", token, "newPassword", "short"}, fields...)...).is(http.StatusBadRequest, other)
		a.tied("newPassword", "The new password must have 8 to 128 characters.")
		if ticked := a.checked() == "unlinkAccounts"; ticked != (fields != nil) || a.field("token") != token {
			t.Errorf("a fault changes the box or the token: %t %s", ticked, a.field("token"))
		}
	}
	somebody.post(page, "token", token, "unlinkAccounts", "1", "newPassword", next).leadsTo("/console/sign-in?done=password-reset")
	somebody.get("/console/sign-in?done=password-reset").is(http.StatusOK, "The password is changed. Sign in with it, and look through your keys: they work as before.")
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM identities`); n != 0 {
		t.Errorf("%d ways are left", n)
	}
	somebody.post(page, "token", token, "newPassword", next).is(http.StatusBadRequest).alerts("The link was used, has expired or is not complete.")
	somebody.get(page).is(http.StatusOK, "Choose another password", "Ask for another")
	somebody.post("/console/sign-in", "email", "ann@example.com", "password", next).leadsTo("/console")
	somebody.get("/console/audit").is(http.StatusOK, "Password reset", "by a link; all sessions ended")
}

func TestForgotPassword_NoMail(t *testing.T) {
	t.Parallel()
	stranger := start(t).browser(t)
	stranger.get("/console/forgot-password").is(http.StatusOK, "This service sends no mail. Ask its operator for a link")
	stranger.post("/console/forgot-password", "email", "ann@example.com").is(http.StatusBadRequest).alerts("This service sends no mail.")
}
