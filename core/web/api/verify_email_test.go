package api_test

import (
	"testing"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/identity/identities"
	"intents.internal/core/pgtest"
)

// insertLink is the token of a link about the account of an address.
func insertLink(t *testing.T, s *service, email string, l identities.Link) string {
	t.Helper()
	owner, err := s.store.Identities.AccountByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	token := account.NewLinkToken()
	l.AccountID, l.Email = owner.ID, owner.Email
	if err := s.store.Identities.InsertLink(t.Context(), account.HashToken(token), l, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return token
}

// Where mail is configured the answer to a sign-up is the same for an address that has an account, and signs nobody in.
func TestSignUp_ByMail(t *testing.T) {
	t.Parallel()
	s := start(t, mailing)
	signUp := func(email, callback string) answer {
		return s.call(t, "POST", "/auth/sign-up/email", `{"name":"Ann","email":"`+email+`","password":"`+newPassword+`","callbackURL":"`+callback+`"}`)
	}
	accepted := want(t, 200, `{"redirect":false,"token":null,"user":{"id":"<id>","name":"Ann","email":"ann@example.com","emailVerified":false,"image":null,
		"createdAt":"<time>","updatedAt":"<time>"}}`, "Cache-Control", "no-store")
	same(t, "a new address", accepted, signUp("ann@example.com", "/app"))
	same(t, "an address that is taken", accepted, signUp("ANN@example.com", "http://intents.example/console/keys"))
	if got := pgtest.LookUp[string](t, s.store, `SELECT string_agg(concat_ws(' ', kind, recipient, callback), ', ') FROM mails`); got != "sign_up ann@example.com, sign_up ann@example.com /console/keys" {
		t.Errorf("mails: %s", got)
	}
	same(t, "another site", invalid(t, "/callbackURL", "must be a path on this site, such as /console"), signUp("bob@example.com", "https://evil.example"))
	same(t, "letters like others", invalid(t, "/email", "must be in ASCII letters; write an international domain in its form that begins with xn--"), signUp("\u0430nn@example.com", ""))
	wrong := refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		same(t, "the password of "+email, wrong, s.call(t, "POST", "/auth/sign-in/email", `{"email":"`+email+`","password":"`+newPassword+`"}`))
	}
}

func TestVerifyEmail(t *testing.T) {
	t.Parallel()
	s := start(t, mailing)
	s.call(t, "POST", "/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"`+newPassword+`"}`)
	link := func() string {
		return insertLink(t, s, "ann@example.com", identities.Link{Purpose: account.VerifyEmail})
	}
	get := func(query string) answer { return s.call(t, "GET", "/auth/verify-email?"+query, "") }
	to := func(path string) answer {
		return answer{Status: 303, Header: map[string]string{"Location": path, "Cache-Control": "no-store"}}
	}
	unknown := refused(t, 401, "INVALID_TOKEN", "The token was used, has expired or is not complete; ask for another.")
	first, second := link(), link()
	same(t, "another site", invalid(t, "/callbackURL", "must be a path on this site, such as /console"), get("token="+first+"&callbackURL=//evil.example"))
	same(t, "a field too many", invalid(t, "userId", "is not a known parameter"), get("userId=x"))
	same(t, "no token", unknown, get(""))
	same(t, "a guess", to("/app?a=b&error=INVALID_TOKEN"), get("token=x&callbackURL=/app?a=b"))
	same(t, "the token", want(t, 200, `{"status":true,"user":null}`, "Cache-Control", "no-store"), get("token="+first))
	same(t, "the token again", unknown, get("token="+first))
	same(t, "another of the account", unknown, get("token="+second))
	in := s.call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+newPassword+`"}`)
	same(t, "signed in", verified(signedIn(t, "Ann", "ann@example.com")), in)
	same(t, "with a callback", to("/app"), get("token="+link()+"&callbackURL=http://intents.example/app"))
	signedOut := refused(t, 401, "UNAUTHORIZED", "Sign in to the account of the link first, then open it again.")
	change := insertLink(t, s, "ann@example.com", identities.Link{Purpose: account.ChangeEmail, NewEmail: "new@example.com"})
	same(t, "a change without a session", signedOut, get("token="+change))
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()
	s := start(t, mailing)
	signedOut := refused(t, 401, "UNAUTHORIZED", "Sign in first.")
	same(t, "nobody", signedOut, s.call(t, "POST", "/auth/change-email", `{"newEmail":"new@example.com"}`))
	off := start(t)
	ann := signUp(t, off, "ann@example.com")
	disabled := refused(t, 400, "VERIFICATION_EMAIL_NOT_ENABLED", "The service sends no mail; ask its operator to verify the address.")
	same(t, "no mail", disabled, off.call(t, "POST", "/auth/change-email", `{"newEmail":"new@example.com"}`, ann...))
	same(t, "no mail to verify", disabled, off.call(t, "POST", "/auth/send-verification-email", `{"email":"ann@example.com"}`))
	queued := want(t, 200, `{"status":true}`)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		same(t, email, queued, s.call(t, "POST", "/auth/send-verification-email", `{"email":"`+email+`","callbackURL":"/app"}`))
	}
	owner := signUp(t, s, "ann@example.com")
	signUp(t, s, "ben@example.com")
	change := insertLink(t, s, "ann@example.com", identities.Link{Purpose: account.ChangeEmail, NewEmail: "ben@example.com"})
	same(t, "an address that is taken", refused(t, 422, "USER_ALREADY_EXISTS", "An account with this e-mail address exists; sign in or use another."),
		s.call(t, "GET", "/auth/verify-email?token="+change, "", owner...))
}
