package auth_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestListSessions(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `DELETE FROM sessions`)
	s.SignIn(t, "X-Forwarded-For", "203.0.113.7", "User-Agent", "First/1.0")
	ann := s.SignIn(t, "X-Forwarded-For", "2001:db8::1", "User-Agent", "Second/1.0")
	session := func(address, browser string) string {
		return `{"id":"<id>","token":"<id>","userId":"<id>","activeOrganizationId":"<id>","ipAddress":"` + address + `","userAgent":"` + browser +
			`","expiresAt":"<time>","createdAt":"<time>","updatedAt":"<time>"}`
	}
	webtest.Same(t, "newest first",
		webtest.Want(t, 200, `[`+session("2001:db8::1", "Second/1.0")+`,`+session("203.0.113.7", "First/1.0")+`]`, "Cache-Control", "no-store"),
		s.Call(t, "GET", "/auth/list-sessions", "", ann...))
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.Call(t, "GET", "/auth/list-sessions", "", signedOut...))
}

func TestRevokeSessions(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	done := webtest.Want(t, 200, `{"status":true}`)
	revoke := func(token string, header ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/revoke-session", `{"token":"`+token+`"}`, header...)
	}
	here := s.SignUp(t, "ann@example.com")
	there, other := s.SignIn(t), s.SignIn(t)
	live := func(what string, want ...bool) {
		t.Helper()
		for n, cookie := range [][]string{here, there, other} {
			if got := s.SessionID(t, cookie) != ""; got != want[n] {
				t.Errorf("%s: session %d is live = %t, want %t", what, n, got, want[n])
			}
		}
	}
	webtest.Same(t, "one", done, revoke(s.SessionID(t, there), here...))
	webtest.Same(t, "unknown", done, revoke(uuid.NewString(), here...))
	webtest.Same(t, "no session's id", done, revoke("x", here...))
	webtest.Same(t, "a field too many", webtest.Invalid(t, "/id", "is not a known field"),
		s.Call(t, "POST", "/auth/revoke-session", `{"token":"x","id":"y"}`, here...))
	live("after one", true, false, true)

	webtest.Same(t, "others", done, s.Call(t, "POST", "/auth/revoke-other-sessions", `{}`, here...))
	webtest.Same(t, "no others", done, s.Call(t, "POST", "/auth/revoke-other-sessions", "", here...))
	live("after the others", true, false, false)

	all := done
	all.Header = map[string]string{"Content-Type": "application/json", "Set-Cookie": cookieCleared, "Cache-Control": "no-store"}
	webtest.Same(t, "all", all, s.Call(t, "POST", "/auth/revoke-sessions", `{}`, here...))
	live("after all", false, false, false)

	out := webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first.")
	webtest.Same(t, "one, signed out", out, revoke(uuid.NewString(), here...))
	for _, path := range []string{"/auth/revoke-other-sessions", "/auth/revoke-sessions"} {
		webtest.Same(t, path+" signed out", out, s.Call(t, "POST", path, `{}`, here...))
	}
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	remove := func(request string, header ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/delete-user", request, header...)
	}
	wrong := webtest.Refused(t, 400, "INVALID_PASSWORD", "Invalid password.")
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), remove(`{"password":"`+webtest.Password+`"}`, signedOut...))
	webtest.Same(t, "a wrong password", wrong, remove(`{"password":"a wrong password"}`, ann...))
	webtest.Same(t, "no password", wrong, remove(`{}`, ann...))
	webtest.Same(t, "another account", webtest.Invalid(t, "/userId", "is not a known field"), remove(`{"password":"`+webtest.Password+`","userId":"x"}`, ann...))
	webtest.Same(t, "no body", webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json."), remove("", ann...))

	deleted := webtest.Want(t, 200, `{"success":true,"message":"User deleted"}`, "Set-Cookie", cookieCleared)
	webtest.Same(t, "deleted", deleted, remove(`{"password":"`+webtest.Password+`","callbackURL":"/"}`, ann...))
	webtest.Same(t, "its session", webtest.Want(t, 200, "null", "Cache-Control", "no-store"), s.Call(t, "GET", "/auth/get-session", "", ann...))
}

// An account that came by a wallet or a provider has no password to confirm with.
func TestDeleteUser_WithoutPassword(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `UPDATE accounts SET password_hash = ''`)
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	webtest.Same(t, "signed in long ago", webtest.Refused(t, 403, "SESSION_NOT_FRESH", "You signed in more than ten minutes ago and have no password. Sign in again the same way, then repeat this within ten minutes."),
		s.Call(t, "POST", "/auth/delete-user", `{}`, ann...))
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - interval '1 minute'`)
	webtest.Same(t, "signed in just now", webtest.Want(t, 200, `{"success":true,"message":"User deleted"}`, "Set-Cookie", cookieCleared),
		s.Call(t, "POST", "/auth/delete-user", `{}`, ann...))
	webtest.Same(t, "nobody can sign in without a password", webtest.Refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password."),
		s.Call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":""}`))
}
