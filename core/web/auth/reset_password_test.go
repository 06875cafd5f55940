package auth_test

import (
	"testing"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// verified is the answer with a user whose address is.
func verified(a webtest.Answer) webtest.Answer {
	a.Body.(map[string]any)["user"].(map[string]any)["emailVerified"] = true //nolint:forcetypeassert // the test made it
	return a
}

func resetPassword(token string) string {
	return `{"token":"` + token + `","newPassword":"` + webtest.NewPassword + `"}`
}

// The answer is one for all addresses, and so is what is done before it: a row of the outbox.
func TestRequestPasswordReset(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `DELETE FROM mails`)
	request := func(body string) webtest.Answer { return s.Call(t, "POST", "/auth/request-password-reset", body) }
	queued := webtest.Want(t, 200, `{"status":true,"message":"If an account has this address, a link to a new password is on its way to it."}`)
	for _, body := range []string{
		`{"email":"ann@example.com"}`, `{"email":"nobody@example.com"}`, `{"email":"ANN@example.com","redirectTo":"/app?a=b"}`, `{"email":"ann@example.com","redirectTo":"http://intents.example/app"}`,
	} {
		webtest.Same(t, body, queued, request(body))
	}
	if got := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(recipient, ' ' ORDER BY id) FROM mails`); got != "ann@example.com nobody@example.com ann@example.com ann@example.com" {
		t.Errorf("mails to %s", got)
	}
	webtest.Same(t, "no address", webtest.Invalid(t, "/email", "must be an e-mail address such as name@example.com"), request(`{}`))
	webtest.Same(t, "another site", webtest.Invalid(t, "/redirectTo", "must be a path on this site, such as /console"), request(`{"email":"ann@example.com","redirectTo":"https://evil.example/"}`))
	webtest.Same(t, "a field too many", webtest.Invalid(t, "/userId", "is not a known field"), request(`{"userId":"x"}`))
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `UPDATE accounts SET email_verified_at = now()`)
	owner, err := s.Store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	token := account.NewLinkToken()
	if err := s.Store.Identities.InsertResetToken(t.Context(), owner, account.HashToken(token), time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	reset := func(body string) webtest.Answer { return s.Call(t, "POST", "/auth/reset-password", body) }
	unknown := webtest.Refused(t, 400, "INVALID_TOKEN", "The token was used, has expired or is not complete; ask for another.")
	webtest.Same(t, "a guess", unknown, reset(resetPassword(account.NewLinkToken())))
	webtest.Same(t, "no token", unknown, reset(`{"newPassword":"`+webtest.NewPassword+`"}`))
	webtest.Same(t, "a short password", webtest.Invalid(t, "/newPassword", "must have 8 to 128 characters"), reset(`{"token":"`+token+`","newPassword":"short"}`))
	webtest.Same(t, "ways that are not asked for by yes or no", webtest.Invalid(t, "/unlinkAccounts", "must not be a JSON string"), reset(`{"token":"`+token+`","newPassword":"`+webtest.NewPassword+`","unlinkAccounts":"yes"}`))
	webtest.Same(t, "another account", webtest.Invalid(t, "/userId", "is not a known field"), reset(`{"userId":"x"}`))
	webtest.Same(t, "the token", webtest.Want(t, 200, `{"status":true}`, "Set-Cookie", deviceSet, "Cache-Control", "no-store"), reset(resetPassword(token)))
}
