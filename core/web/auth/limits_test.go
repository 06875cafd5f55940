package auth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/webtest"
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
		change       func(*webtest.Settings)
		first, again [2]string // path and body
		status       int       // of the first
	}{
		"sign-in of an address": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"bob@example.com","password":"x"}`},
			401,
		},
		"sign-in to an account": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerAccount = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + webtest.Password + `"}`},
			401,
		},
		"sign-in to an account from an address": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + webtest.Password + `"}`},
			401,
		},
		"sign-up": {
			func(s *webtest.Settings) { s.Identity.Limits.SignUpPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/sign-up/email", `{"email":"ann@example.com","password":"` + webtest.Password + `"}`},
			[2]string{"/auth/sign-up/email", `{"email":"bob@example.com","password":"` + webtest.Password + `"}`},
			422,
		},
		"keys of an account": {
			func(s *webtest.Settings) { s.Identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			200,
		},
		"keys of an address": {
			func(s *webtest.Settings) { s.Identity.Limits.KeysPerIP = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			200,
		},
		"rotation": {
			func(s *webtest.Settings) { s.Identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			404,
		},
		"change of the password": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/change-password", changePassword("a wrong password", webtest.NewPassword)},
			[2]string{"/auth/change-password", changePassword(webtest.Password, webtest.NewPassword)},
			400,
		},
		"mails to an address": {
			func(s *webtest.Settings) { webtest.WithMail(s); s.Identity.Limits.MailsPerAddress = 1 },
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"NOBODY@example.com"}`},
			200,
		},
		"mails from an address": {
			func(s *webtest.Settings) { webtest.WithMail(s); s.Identity.Limits.MailsPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"ann@example.com"}`},
			200,
		},
		"reset tokens": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/reset-password", resetPassword("a guess")},
			[2]string{"/auth/reset-password", resetPassword("another guess")},
			400,
		},
		"deletion": {
			func(s *webtest.Settings) { s.Identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/delete-user", `{"password":"a wrong password"}`},
			[2]string{"/auth/delete-user", `{"password":"` + webtest.Password + `"}`},
			400,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := webtest.Start(t, c.change)
			ann := s.SignUp(t, "ann@example.com")
			first := s.Send(t, "POST", c.first[0], c.first[1], ann...)
			if text := webtest.ReadAll(t, first); first.StatusCode != c.status {
				t.Errorf("the first: %d %s, want %d", first.StatusCode, text, c.status)
			}
			next := s.Send(t, "POST", c.again[0], c.again[1], ann...)
			text := webtest.ReadAll(t, next)
			tooOften(t, next.StatusCode, next.Header, text)
		})
	}
}

// What is refused for its form was no try.
func TestLimits_MalformedNotCounted(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, func(s *webtest.Settings) {
		s.Identity.Limits.SignUpPerIP, s.Identity.Limits.SignInPerIP, s.Identity.Limits.KeysPerAccount = 1, 1, 1
	})
	for range 3 {
		for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
			webtest.Same(t, path, webtest.Invalid(t, "/email", "must be an e-mail address such as name@example.com"),
				s.Call(t, "POST", path, `{"email":"ann","password":"`+webtest.Password+`"}`))
		}
	}
	ann := s.SignUp(t, "ann@example.com")
	for range 3 {
		webtest.Same(t, "a key without a name", webtest.Invalid(t, "/name", "must have 1 to 64 characters"),
			s.Call(t, "POST", "/auth/api-key/create", `{"name":" "}`, ann...))
	}
	s.CreateKey(t, `{"name":"ci"}`, ann)
}

// Whose turn to have a password checked does not come is told so, before the gateway gives up.
func TestLimits_PasswordsBusy(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, func(s *webtest.Settings) { s.Identity.Passwords = &account.Passwords{} }) // it has no turn to give
	busy := webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "Too many people are signing in; try again in a second.", "Retry-After", "1")
	for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			webtest.Same(t, path, busy, s.Call(t, "POST", path, `{"email":"ann@example.com","password":"`+webtest.Password+`"}`))
		})
	}
}

// Session routes have limits beside those of what they do: of a network without a session, and of a signed-in person's writes.
func TestLimits_SessionRoutes(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	refusedAtLast := func(method, path string, header ...string) {
		t.Helper()
		for range 10_000 {
			response := s.Send(t, method, path, "", header...)
			if text := webtest.ReadAll(t, response); response.StatusCode == http.StatusTooManyRequests {
				tooOften(t, response.StatusCode, response.Header, text)
				return
			}
		}
		t.Errorf("%s %s is never refused", method, path)
	}
	refusedAtLast("GET", "/auth/get-session")
	if s.SessionID(t, ann) == "" {
		t.Error("who is signed in has no session")
	}
	refusedAtLast("POST", "/auth/revoke-other-sessions", ann...)
	if s.SessionID(t, ann) == "" {
		t.Error("a read is refused for writes")
	}
}
