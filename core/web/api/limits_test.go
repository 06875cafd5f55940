package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"intents.internal/core/identity/account"
)

// tooOften holds an answer to the shape of every 429.
func tooOften(t *testing.T, status int, header http.Header, text string) {
	t.Helper()
	var body struct {
		Code, Message string
		Details       struct{ TryAgainIn int64 }
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || status != 429 {
		t.Errorf("%d %s", status, text)
		return
	}
	want := fmt.Sprintf(`{"code":"RATE_LIMITED","message":"Too many tries were made. Wait as long as Retry-After says, then try again.",`+
		`"details":{"tryAgainIn":%d}}`, body.Details.TryAgainIn)
	wait := strconv.FormatInt((body.Details.TryAgainIn+999)/1000, 10)
	if text != want || body.Details.TryAgainIn < 1 || header.Get("Retry-After") != wait || header.Get("Set-Cookie") != "" {
		t.Errorf("%v %s", header, text)
	}
}

// Each case spends a bucket of one, and is refused for the next.
func TestLimits_Exceeded(t *testing.T) {
	t.Parallel()
	const guess = `{"email":"ann@example.com","password":"a wrong password"}`
	for name, c := range map[string]struct {
		change       func(*settings)
		first, again [2]string // path and body
		status       int       // of the first
	}{
		"sign-in of an address": {
			func(s *settings) { s.identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"bob@example.com","password":"x"}`},
			401,
		},
		"sign-in to an account": {
			func(s *settings) { s.identity.Limits.SignInPerAccount = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + password + `"}`},
			401,
		},
		"sign-in to an account from an address": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + password + `"}`},
			401,
		},
		"sign-up": {
			func(s *settings) { s.identity.Limits.SignUpPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/sign-up/email", `{"email":"ann@example.com","password":"` + password + `"}`},
			[2]string{"/auth/sign-up/email", `{"email":"bob@example.com","password":"` + password + `"}`},
			422,
		},
		"keys of an account": {
			func(s *settings) { s.identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			200,
		},
		"keys of an address": {
			func(s *settings) { s.identity.Limits.KeysPerIP = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			200,
		},
		"rotation": {
			func(s *settings) { s.identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			404,
		},
		"change of the password": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/change-password", changePassword("a wrong password", newPassword)},
			[2]string{"/auth/change-password", changePassword(password, newPassword)},
			400,
		},
		"mails to an address": {
			func(s *settings) { mailing(s); s.identity.Limits.MailsPerAddress = 1 },
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"NOBODY@example.com"}`},
			200,
		},
		"mails from an address": {
			func(s *settings) { mailing(s); s.identity.Limits.MailsPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"ann@example.com"}`},
			200,
		},
		"reset tokens": {
			func(s *settings) { s.identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/reset-password", resetPassword("a guess")},
			[2]string{"/auth/reset-password", resetPassword("another guess")},
			400,
		},
		"deletion": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/delete-user", `{"password":"a wrong password"}`},
			[2]string{"/auth/delete-user", `{"password":"` + password + `"}`},
			400,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.change)
			ann := signUp(t, s, "ann@example.com")
			first := s.send(t, "POST", c.first[0], c.first[1], ann...)
			if text := readAll(t, first); first.StatusCode != c.status {
				t.Errorf("the first: %d %s, want %d", first.StatusCode, text, c.status)
			}
			next := s.send(t, "POST", c.again[0], c.again[1], ann...)
			text := readAll(t, next)
			tooOften(t, next.StatusCode, next.Header, text)
		})
	}
}

// What is refused for its form was no try.
func TestLimits_MalformedNotCounted(t *testing.T) {
	t.Parallel()
	s := start(t, func(s *settings) {
		s.identity.Limits.SignUpPerIP, s.identity.Limits.SignInPerIP, s.identity.Limits.KeysPerAccount = 1, 1, 1
	})
	for range 3 {
		for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
			same(t, path, invalid(t, "/email", "must be an e-mail address such as name@example.com"),
				s.call(t, "POST", path, `{"email":"ann","password":"`+password+`"}`))
		}
	}
	ann := signUp(t, s, "ann@example.com")
	for range 3 {
		same(t, "a key without a name", invalid(t, "/name", "must have 1 to 64 characters"),
			s.call(t, "POST", "/auth/api-key/create", `{"name":" "}`, ann...))
	}
	createKey(t, s, `{"name":"ci"}`, ann)
}

// Whose turn to have a password checked does not come is told so, before the gateway gives up.
func TestLimits_PasswordsBusy(t *testing.T) {
	t.Parallel()
	s := start(t, func(s *settings) { s.identity.Passwords = &account.Passwords{} }) // it has no turn to give
	busy := refused(t, 503, "SERVICE_UNAVAILABLE", "Too many people are signing in; try again in a second.", "Retry-After", "1")
	for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			same(t, path, busy, s.call(t, "POST", path, `{"email":"ann@example.com","password":"`+password+`"}`))
		})
	}
}

// Session routes have limits beside those of what they do: of a network without a session, and of a signed-in person's writes.
func TestLimits_SessionRoutes(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	refusedAtLast := func(method, path string, header ...string) {
		t.Helper()
		for range 10_000 {
			response := s.send(t, method, path, "", header...)
			if text := readAll(t, response); response.StatusCode == http.StatusTooManyRequests {
				tooOften(t, response.StatusCode, response.Header, text)
				return
			}
		}
		t.Errorf("%s %s is never refused", method, path)
	}
	refusedAtLast("GET", "/auth/get-session")
	if sessionID(t, s, ann) == "" {
		t.Error("who is signed in has no session")
	}
	refusedAtLast("POST", "/auth/revoke-other-sessions", ann...)
	if sessionID(t, s, ann) == "" {
		t.Error("a read is refused for writes")
	}
}
