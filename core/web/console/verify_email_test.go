package console_test

import (
	"net/http"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// The pages say of a taken address what they say of any, and opening a link uses nothing up.
func TestSignUp_ByMail(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *identity.Config) { c.MailQueued = func() {} })
	stranger := s.browser(t)
	const page, password = "/console/verify-email", "staple correct horse"
	for range 2 {
		stranger.post("/console/sign-up", "email", "ann@example.com", "password", password).is(http.StatusOK, "A mail is on its way to ann@example.com.")
	}
	stranger.post("/console/sign-in", "email", "ann@example.com", "password", password).is(http.StatusUnauthorized).alerts("open the link in your mail first.")
	owner, err := s.store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	token := account.NewLinkToken()
	l := identity.Link{Purpose: account.VerifyEmail, AccountID: owner.ID, Email: owner.Email}
	if err := s.store.Identities.InsertLink(t.Context(), account.HashToken(token), l, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := stranger.get(page+"?token="+token).is(http.StatusOK, "Confirm your address", "Password of the account"); a.field("token") != token {
			t.Errorf("the form has the token %q", a.field("token"))
		}
	}
	stranger.post(page, "token", token, "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	stranger.post(page, "token", token, "password", password, "callbackURL", "https://evil.example").is(http.StatusBadRequest)
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM accounts WHERE email_verified_at IS NOT NULL`); n != 0 {
		t.Error("a refused form has verified the address")
	}
	stranger.post(page, "token", token, "password", password).leadsTo("/console/account?done=email-verified")
	stranger.get("/console/account").is(http.StatusOK, "Verified")
	stranger.get(page+"?token="+token).is(http.StatusUnauthorized, "The link was used, has expired or is not complete.")
}

// An account that has lost its address says how its holder signs in.
func TestShowAccount_LostAddress(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	lost := account.LostEmail(s.ann(t).ID)
	ann.get("/console/account").is(http.StatusOK, "Not verified")
	pgtest.Exec(t, s.store, `UPDATE accounts SET email = $1`, lost)
	ann.get("/console/account").is(http.StatusOK, "You sign in as", lost)
}
