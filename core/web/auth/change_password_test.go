package auth_test

import (
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func changePassword(current, next string) string {
	return `{"currentPassword":"` + current + `","newPassword":"` + next + `"}`
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	here := s.SignUp(t, "ann@example.com")
	change := func(request string, header ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/change-password", request, header...)
	}
	wrong := webtest.Refused(t, 400, "INVALID_PASSWORD", "Invalid password.")
	rule := webtest.Invalid(t, "/newPassword", "must have 8 to 128 characters")
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), change(changePassword(webtest.Password, webtest.NewPassword), signedOut...))
	webtest.Same(t, "a wrong password", wrong, change(changePassword("a wrong password", webtest.NewPassword), here...))
	webtest.Same(t, "no current password", wrong, change(`{"newPassword":"`+webtest.NewPassword+`"}`, here...))
	webtest.Same(t, "a short password", rule, change(changePassword(webtest.Password, "1234567"), here...))
	webtest.Same(t, "no new password", rule, change(`{"currentPassword":"`+webtest.Password+`"}`, here...))
	webtest.Same(t, "another account", webtest.Invalid(t, "/userId", "is not a known field"), change(`{"userId":"x"}`, here...))
	if s.SessionID(t, here) == "" {
		t.Error("a refused change ended the session")
	}

	response := s.Send(t, "POST", "/auth/change-password", // ReadAll closes the body
		`{"currentPassword":"`+webtest.Password+`","newPassword":"`+webtest.NewPassword+`","revokeOtherSessions":false}`, here...)
	if text := webtest.ReadAll(t, response); response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	webtest.Same(t, "changed with the new session", webtest.Want(t, 200, `{"token":null,"user":`+user("Ann", "ann@example.com")+`}`,
		"Set-Cookie", cookieSet+"\n"+deviceSet, "Cache-Control", "no-store"), change(changePassword(webtest.NewPassword, webtest.Password), "Cookie", cookie))
}

// An account of a wallet or a provider has no password to change.
func TestChangePassword_None(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `UPDATE accounts SET password_hash = ''`)
	webtest.Same(t, "no password", webtest.Refused(t, 400, "CREDENTIAL_ACCOUNT_NOT_FOUND", "The account has no password; it signs in another way."),
		s.Call(t, "POST", "/auth/change-password", changePassword("", webtest.NewPassword), ann...))
}
