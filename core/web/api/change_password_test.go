package api_test

import (
	"strings"
	"testing"

	"intents.internal/core/pgtest"
)

const newPassword = "staple correct horse"

func changePassword(current, next string) string {
	return `{"currentPassword":"` + current + `","newPassword":"` + next + `"}`
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := start(t)
	here := signUp(t, s, "ann@example.com")
	there := signIn(t, s)
	change := func(request string, header ...string) answer {
		return s.call(t, "POST", "/auth/change-password", request, header...)
	}
	wrong := refused(t, 400, "INVALID_PASSWORD", "Invalid password.")
	rule := invalid(t, "/newPassword", "must have 8 to 128 characters")
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), change(changePassword(password, newPassword), signedOut...))
	same(t, "a wrong password", wrong, change(changePassword("a wrong password", newPassword), here...))
	same(t, "no current password", wrong, change(`{"newPassword":"`+newPassword+`"}`, here...))
	same(t, "a short password", rule, change(changePassword(password, "1234567"), here...))
	same(t, "no new password", rule, change(`{"currentPassword":"`+password+`"}`, here...))
	same(t, "another account", invalid(t, "/userId", "is not a known field"), change(`{"userId":"x"}`, here...))
	if sessionID(t, s, there) == "" {
		t.Error("a refused change ended a session")
	}

	before := sessionID(t, s, here)
	response := s.send(t, "POST", "/auth/change-password", // readAll closes the body
		`{"currentPassword":"`+password+`","newPassword":"`+newPassword+`","revokeOtherSessions":false}`, here...)
	if text := readAll(t, response); response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	renewed := []string{"Cookie", cookie}
	if id := sessionID(t, s, renewed); id == "" || id == before {
		t.Errorf("the session of the change is %q, before it %q", id, before)
	}
	for what, ended := range map[string][]string{"the session that asked": here, "another session": there} {
		if sessionID(t, s, ended) != "" {
			t.Errorf("%s has not ended", what)
		}
	}
	same(t, "the old password", refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password."),
		s.call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+password+`"}`))
	same(t, "the new password", signedIn(t, "Ann", "ann@example.com"),
		s.call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+newPassword+`"}`))
	same(t, "changed again", want(t, 200, `{"token":null,"user":`+user("Ann", "ann@example.com")+`}`,
		"Set-Cookie", cookieSet+"\n"+deviceSet, "Cache-Control", "no-store"), change(changePassword(newPassword, password), renewed...))
}

// An account of a wallet or a provider has no password to change.
func TestChangePassword_None(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	same(t, "no password", refused(t, 400, "CREDENTIAL_ACCOUNT_NOT_FOUND", "The account has no password; it signs in another way."),
		s.call(t, "POST", "/auth/change-password", changePassword("", newPassword), ann...))
}
