package console_test

import (
	"net/http"
	"testing"

	"intents.internal/core/pgtest"
)

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	const page, next = "/console/account/password", "staple correct horse"

	if link := ann.get("/console/account").is(http.StatusOK, "Change it").link(page); link != page {
		t.Errorf("the account's page leads to %q", link)
	}
	ann.get(page).is(http.StatusOK, "Change your password", "All other sessions end.")
	ann.post(page, "password", "a wrong password", "newPassword", next).is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post(page, "password", password, "newPassword", "short").is(http.StatusBadRequest).
		tied("newPassword", "The new password must have 8 to 128 characters.")
	ann.post(page, "password", password, "newPassword", next).leadsTo("/console/account?done=password-changed")
	ann.get("/console/account?done=password-changed").is(http.StatusOK, "The password is changed, and all other sessions are ended.")
	ann.get("/console/audit").is(http.StatusOK, "Password changed", "all other sessions ended")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	ann.get(page).is(http.StatusOK, "Your account has no password")
	ann.post(page, "password", "", "newPassword", next).is(http.StatusBadRequest).alerts("Your account has no password")
}
