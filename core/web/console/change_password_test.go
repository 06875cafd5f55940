package console_test

import (
	"net/http"
	"testing"

	"intents.internal/core/store/postgres/pgtest"
)

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := start(t, typed)
	ann, other := s.signedUp(t, "ann@example.com"), s.browser(t)
	other.post("/console/sign-in", "email", "ann@example.com", "password", password).leadsTo("/console")
	const page, next = "/console/account/password", "staple correct horse"

	if link := ann.get("/console/account").is(http.StatusOK, "Change it").link(page); link != page {
		t.Errorf("the account's page leads to %q", link)
	}
	ann.get(page).is(http.StatusOK, "Change your password", "All other sessions end.")
	ann.post(page, "password", "a wrong password", "newPassword", next).is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post(page, "password", password, "newPassword", "short").is(http.StatusBadRequest).
		tied("newPassword", "The new password must have 8 to 128 characters.")
	other.get("/console").is(http.StatusOK)

	ann.post(page, "password", password, "newPassword", next).leadsTo("/console/account?done=password-changed")
	ann.get("/console/account?done=password-changed").is(http.StatusOK, "The password is changed, and all other sessions are ended.")
	other.get("/console").leadsTo("/console/sign-in?done=ended&next=%2Fconsole")
	ann.get("/console/audit").is(http.StatusOK, "Password changed", "all other sessions ended")
	other.post("/console/sign-in", "email", "ann@example.com", "password", password).is(http.StatusUnauthorized)
	other.post("/console/sign-in", "email", "ann@example.com", "password", next).leadsTo("/console")

	s.browser(t).get(page).leadsTo("/console/sign-in?next=%2Fconsole%2Faccount%2Fpassword")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	ann.get(page).is(http.StatusOK, "Your account has no password")
	ann.post(page, "password", "", "newPassword", next).is(http.StatusBadRequest).alerts("Your account has no password")
}
