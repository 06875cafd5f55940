package api_test

import (
	"testing"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// mailing queues mails, which nobody sends.
func mailing(s *settings) { s.identity.MailQueued = func() {} }

// verified is the answer with a user whose address is.
func verified(a answer) answer {
	a.Body.(map[string]any)["user"].(map[string]any)["emailVerified"] = true //nolint:forcetypeassert // the test made it
	return a
}

func resetPassword(token string) string {
	return `{"token":"` + token + `","newPassword":"` + newPassword + `"}`
}

// The answer is one for all addresses, and so is what is done before it: a row of the outbox.
func TestRequestPasswordReset(t *testing.T) {
	t.Parallel()
	s := start(t, mailing)
	signUp(t, s, "ann@example.com")
	pgtest.Exec(t, s.store, `DELETE FROM mails`)
	request := func(body string) answer { return s.call(t, "POST", "/auth/request-password-reset", body) }
	queued := want(t, 200, `{"status":true,"message":"If an account has this address, a link to a new password is on its way to it."}`)
	for _, body := range []string{
		`{"email":"ann@example.com"}`, `{"email":"nobody@example.com"}`, `{"email":"ANN@example.com","redirectTo":"/app?a=b"}`, `{"email":"ann@example.com","redirectTo":"http://intents.example/app"}`,
	} {
		same(t, body, queued, request(body))
	}
	if got := pgtest.LookUp[string](t, s.store, `SELECT string_agg(recipient, ' ' ORDER BY id) FROM mails`); got != "ann@example.com nobody@example.com ann@example.com ann@example.com" {
		t.Errorf("mails to %s", got)
	}
	same(t, "no address", invalid(t, "/email", "must be an e-mail address such as name@example.com"), request(`{}`))
	same(t, "another site", invalid(t, "/redirectTo", "must be a path on this site, such as /console"), request(`{"email":"ann@example.com","redirectTo":"https://evil.example/"}`))
	same(t, "a field too many", invalid(t, "/userId", "is not a known field"), request(`{"userId":"x"}`))
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s := start(t)
	signUp(t, s, "ann@example.com")
	pgtest.Exec(t, s.store, `UPDATE accounts SET email_verified_at = now()`)
	owner, err := s.store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	token := account.NewLinkToken()
	if err := s.store.Identities.InsertResetToken(t.Context(), owner, account.HashToken(token), time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	reset := func(body string) answer { return s.call(t, "POST", "/auth/reset-password", body) }
	unknown := refused(t, 400, "INVALID_TOKEN", "The token was used, has expired or is not complete; ask for another.")
	same(t, "a guess", unknown, reset(resetPassword(account.NewLinkToken())))
	same(t, "no token", unknown, reset(`{"newPassword":"`+newPassword+`"}`))
	same(t, "a short password", invalid(t, "/newPassword", "must have 8 to 128 characters"), reset(`{"token":"`+token+`","newPassword":"short"}`))
	same(t, "ways that are not asked for by yes or no", invalid(t, "/unlinkAccounts", "must not be a JSON string"), reset(`{"token":"`+token+`","newPassword":"`+newPassword+`","unlinkAccounts":"yes"}`))
	same(t, "another account", invalid(t, "/userId", "is not a known field"), reset(`{"userId":"x"}`))
	same(t, "the token", want(t, 200, `{"status":true}`, "Set-Cookie", deviceSet, "Cache-Control", "no-store"), reset(resetPassword(token)))
}
