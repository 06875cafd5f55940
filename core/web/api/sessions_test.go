package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

// signIn returns the cookie of a new session of ann@example.com as a header.
func signIn(t *testing.T, s *service, header ...string) []string {
	t.Helper()
	response := s.send(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+password+`"}`, header...)
	if text := readAll(t, response); response.StatusCode != 200 {
		t.Fatalf("sign in: %s", text)
	}
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return []string{"Cookie", cookie}
}

// sessionID is the id of the session in a cookie, empty if it has none.
func sessionID(t *testing.T, s *service, cookie []string) string {
	t.Helper()
	var current *struct{ Session struct{ ID string } }
	response := s.send(t, "GET", "/auth/get-session", "", cookie...)
	text := readAll(t, response)
	if err := json.Unmarshal([]byte(text), &current); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", response.StatusCode, text, err)
	}
	if current == nil {
		return ""
	}
	return current.Session.ID
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	signUp(t, s, "ann@example.com")
	pgtest.Exec(t, s.store, `DELETE FROM sessions`)
	signIn(t, s, "X-Forwarded-For", "203.0.113.7", "User-Agent", "First/1.0")
	ann := signIn(t, s, "X-Forwarded-For", "2001:db8::1", "User-Agent", "Second/1.0")
	session := func(address, browser string) string {
		return `{"id":"<id>","token":"<id>","userId":"<id>","activeOrganizationId":"<id>","ipAddress":"` + address + `","userAgent":"` + browser +
			`","expiresAt":"<time>","createdAt":"<time>","updatedAt":"<time>"}`
	}
	same(t, "newest first",
		want(t, 200, `[`+session("2001:db8::1", "Second/1.0")+`,`+session("203.0.113.7", "First/1.0")+`]`, "Cache-Control", "no-store"),
		s.call(t, "GET", "/auth/list-sessions", "", ann...))
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.call(t, "GET", "/auth/list-sessions", "", signedOut...))
}

func TestRevokeSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	done := want(t, 200, `{"status":true}`)
	revoke := func(token string, header ...string) answer {
		return s.call(t, "POST", "/auth/revoke-session", `{"token":"`+token+`"}`, header...)
	}
	here := signUp(t, s, "ann@example.com")
	there, other := signIn(t, s), signIn(t, s)
	live := func(what string, want ...bool) {
		t.Helper()
		for n, cookie := range [][]string{here, there, other} {
			if got := sessionID(t, s, cookie) != ""; got != want[n] {
				t.Errorf("%s: session %d is live = %t, want %t", what, n, got, want[n])
			}
		}
	}
	same(t, "one", done, revoke(sessionID(t, s, there), here...))
	same(t, "unknown", done, revoke(uuid.NewString(), here...))
	same(t, "no session's id", done, revoke("x", here...))
	same(t, "a field too many", invalid(t, "/id", "is not a known field"),
		s.call(t, "POST", "/auth/revoke-session", `{"token":"x","id":"y"}`, here...))
	live("after one", true, false, true)

	same(t, "others", done, s.call(t, "POST", "/auth/revoke-other-sessions", `{}`, here...))
	same(t, "no others", done, s.call(t, "POST", "/auth/revoke-other-sessions", "", here...))
	live("after the others", true, false, false)

	all := done
	all.Header = map[string]string{"Content-Type": "application/json", "Set-Cookie": cookieCleared, "Cache-Control": "no-store"}
	same(t, "all", all, s.call(t, "POST", "/auth/revoke-sessions", `{}`, here...))
	live("after all", false, false, false)

	out := refused(t, 401, "UNAUTHORIZED", "Sign in first.")
	same(t, "one, signed out", out, revoke(uuid.NewString(), here...))
	for _, path := range []string{"/auth/revoke-other-sessions", "/auth/revoke-sessions"} {
		same(t, path+" signed out", out, s.call(t, "POST", path, `{}`, here...))
	}
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	remove := func(request string, header ...string) answer {
		return s.call(t, "POST", "/auth/delete-user", request, header...)
	}
	wrong := refused(t, 400, "INVALID_PASSWORD", "Invalid password.")
	same(t, "signed out", refused(t, 401, "UNAUTHORIZED", "Sign in first."), remove(`{"password":"`+password+`"}`, signedOut...))
	same(t, "a wrong password", wrong, remove(`{"password":"a wrong password"}`, ann...))
	same(t, "no password", wrong, remove(`{}`, ann...))
	same(t, "another account", invalid(t, "/userId", "is not a known field"), remove(`{"password":"`+password+`","userId":"x"}`, ann...))
	same(t, "no body", refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json."), remove("", ann...))

	deleted := want(t, 200, `{"success":true,"message":"User deleted"}`, "Set-Cookie", cookieCleared)
	same(t, "deleted", deleted, remove(`{"password":"`+password+`","callbackURL":"/"}`, ann...))
	same(t, "its session", want(t, 200, "null", "Cache-Control", "no-store"), s.call(t, "GET", "/auth/get-session", "", ann...))
}

// An account that came by a wallet or a provider has no password to confirm with.
func TestDeleteUser_WithoutPassword(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	same(t, "signed in long ago", refused(t, 403, "SESSION_NOT_FRESH", "You signed in more than ten minutes ago and have no password. Sign in again the same way, then repeat this within ten minutes."),
		s.call(t, "POST", "/auth/delete-user", `{}`, ann...))
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '1 minute'`)
	same(t, "signed in just now", want(t, 200, `{"success":true,"message":"User deleted"}`, "Set-Cookie", cookieCleared),
		s.call(t, "POST", "/auth/delete-user", `{}`, ann...))
	same(t, "nobody can sign in without a password", refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password."),
		s.call(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":""}`))
}
