package auth_test

import (
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// Where mail is configured the answer to a sign-up is the same for an address that has an account, and signs nobody in.
func TestSignUp_ByMail(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	signUp := func(email, callback string) webtest.Answer {
		return s.Call(t, "POST", "/auth/sign-up/email", `{"name":"Ann","email":"`+email+`","password":"`+webtest.NewPassword+`","callbackURL":"`+callback+`"}`)
	}
	accepted := webtest.Want(t, 200, `{"redirect":false,"token":null,"user":{"id":"<id>","name":"Ann","email":"ann@example.com","emailVerified":false,"image":null,
		"createdAt":"<time>","updatedAt":"<time>"}}`, "Cache-Control", "no-store")
	webtest.Same(t, "a new address", accepted, signUp("ann@example.com", "/app"))
	webtest.Same(t, "an address that is taken", accepted, signUp("ANN@example.com", "http://intents.example/console/keys"))
	if got := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(concat_ws(' ', kind, recipient, callback), ', ') FROM mails`); got != "sign_up ann@example.com, sign_up ann@example.com /console/keys" {
		t.Errorf("mails: %s", got)
	}
	webtest.Same(t, "another site", webtest.Invalid(t, "/callbackURL", "must be a path on this site, such as /console"), signUp("bob@example.com", "https://evil.example"))
	webtest.Same(t, "letters like others", webtest.Invalid(t, "/email", "must be in ASCII letters; write an international domain in its form that begins with xn--"), signUp("\u0430nn@example.com", ""))
	wrong := webtest.Refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		webtest.Same(t, "the password of "+email, wrong, s.Call(t, "POST", "/auth/sign-in/email", `{"email":"`+email+`","password":"`+webtest.NewPassword+`"}`))
	}
}

func TestVerifyEmail(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	s.Call(t, "POST", "/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"`+webtest.NewPassword+`"}`)
	link := func() string {
		return s.InsertLink(t, "ann@example.com", identity.Link{Purpose: account.VerifyEmail})
	}
	get := func(query string) webtest.Answer { return s.Call(t, "GET", "/auth/verify-email?"+query, "") }
	to := func(path string) webtest.Answer {
		return webtest.Answer{Status: 303, Header: map[string]string{"Location": path, "Cache-Control": "no-store"}}
	}
	unknown := webtest.Refused(t, 401, "INVALID_TOKEN", "The token was used, has expired or is not complete; ask for another.")
	first, second := link(), link()
	webtest.Same(t, "another site", webtest.Invalid(t, "/callbackURL", "must be a path on this site, such as /console"), get("token="+first+"&callbackURL=//evil.example"))
	webtest.Same(t, "a field too many", webtest.Invalid(t, "userId", "is not a known parameter"), get("userId=x"))
	webtest.Same(t, "no token", unknown, get(""))
	webtest.Same(t, "a guess", to("/app?a=b&error=INVALID_TOKEN"), get("token=x&callbackURL=/app?a=b"))
	webtest.Same(t, "the token", webtest.Want(t, 200, `{"status":true,"user":null}`, "Cache-Control", "no-store"), get("token="+first))
	webtest.Same(t, "the token again", unknown, get("token="+first))
	webtest.Same(t, "another of the account", unknown, get("token="+second))
	in := s.Call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.NewPassword+`"}`)
	webtest.Same(t, "signed in", verified(signedIn(t, "Ann", "ann@example.com")), in)
	webtest.Same(t, "with a callback", to("/app"), get("token="+link()+"&callbackURL=http://intents.example/app"))
	signedOut := webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in to the account of the link first, then open it again.")
	change := s.InsertLink(t, "ann@example.com", identity.Link{Purpose: account.ChangeEmail, NewEmail: "new@example.com"})
	webtest.Same(t, "a change without a session", signedOut, get("token="+change))
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	signedOut := webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first.")
	webtest.Same(t, "nobody", signedOut, s.Call(t, "POST", "/auth/change-email", `{"newEmail":"new@example.com"}`))
	off := webtest.Start(t)
	ann := off.SignUp(t, "ann@example.com")
	disabled := webtest.Refused(t, 400, "VERIFICATION_EMAIL_NOT_ENABLED", "The service sends no mail; ask its operator to verify the address.")
	webtest.Same(t, "no mail", disabled, off.Call(t, "POST", "/auth/change-email", `{"newEmail":"new@example.com"}`, ann...))
	webtest.Same(t, "no mail to verify", disabled, off.Call(t, "POST", "/auth/send-verification-email", `{"email":"ann@example.com"}`))
	queued := webtest.Want(t, 200, `{"status":true}`)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		webtest.Same(t, email, queued, s.Call(t, "POST", "/auth/send-verification-email", `{"email":"`+email+`","callbackURL":"/app"}`))
	}
	owner := s.SignUp(t, "ann@example.com")
	s.SignUp(t, "ben@example.com")
	change := s.InsertLink(t, "ann@example.com", identity.Link{Purpose: account.ChangeEmail, NewEmail: "ben@example.com"})
	webtest.Same(t, "an address that is taken", webtest.Refused(t, 422, "USER_ALREADY_EXISTS", "An account with this e-mail address exists; sign in or use another."),
		s.Call(t, "GET", "/auth/verify-email?token="+change, "", owner...))
}
