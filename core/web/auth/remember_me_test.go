package auth_test

import (
	"net/http"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// With rememberMe: false nothing stays in the browser after its end, and on the server a day at most. A new password changes neither.
func TestSignIn_NotRemembered(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	const cookie = "intents.session=<>; Path=/; HttpOnly; SameSite=Lax"
	brief := signedIn(t, "Ann", "ann@example.com")
	brief.Header["Set-Cookie"] = cookie
	fields := `"email":"ann@example.com","password":"` + webtest.Password + `","rememberMe":false}`
	webtest.Same(t, "sign up", brief, s.Call(t, "POST", "/auth/sign-up/email", `{"name":"Ann",`+fields))
	webtest.Same(t, "sign in", brief, s.Call(t, "POST", "/auth/sign-in/email", `{`+fields))
	response := s.Send(t, "POST", "/auth/sign-in/email", `{`+fields)
	if text := webtest.ReadAll(t, response); response.StatusCode != http.StatusOK {
		t.Fatalf("sign in: %d %s", response.StatusCode, text)
	}
	value, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	changed := s.Call(t, "POST", "/auth/change-password", changePassword(webtest.Password, webtest.NewPassword), "Cookie", value)
	if changed.Status != http.StatusOK || changed.Header["Set-Cookie"] != cookie {
		t.Errorf("the new password's answer: %+v", changed)
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM sessions WHERE expires_at > created_at + interval '1 day'`); n != 0 {
		t.Errorf("%d sessions last longer than a day", n)
	}
}

// Browsers are told to stay with TLS where the service has it, and nowhere else.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for publicURL, want := range map[string]string{"https://intents.example": "max-age=31536000", "http://intents.example": ""} {
		s := webtest.Start(t, func(c *webtest.Settings) {
			c.API.PublicURL, c.Identity.PublicURL = publicURL, publicURL
			c.API.Console = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		})
		for _, path := range []string{"/console", "/console/sign-in", "/auth/get-session", "/auth/none"} {
			response := s.Send(t, "GET", path, "")
			webtest.ReadAll(t, response)
			if got := response.Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s%s: %q, want %q", publicURL, path, got, want)
			}
		}
	}
}
