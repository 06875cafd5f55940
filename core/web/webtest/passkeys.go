package webtest

import (
	"fmt"
	"strings"
	"testing"

	"intents.internal/core/identity/passkeytest"
)

// The site whose passkeys browsers know, and its passkeys' routes.
const (
	PasskeySite = "https://intents.example"
	PasskeyHost = "intents.example"
	PasskeyPath = "/auth/passkey/"
)

// WithPasskeys has the service at a URL where browsers know passkeys.
func WithPasskeys(c *Settings) {
	c.API.PublicURL, c.Identity.PublicURL = PasskeySite, PasskeySite
}

// Browser is a browser with the cookies of its session and of its challenge.
type Browser struct {
	t       *testing.T
	s       *Service
	session string
	// Cookie is that of the challenge.
	Cookie string
}

// Browse is the browser of a session, a header as SignUp returns it.
func (s *Service) Browse(t *testing.T, session ...string) *Browser {
	t.Helper()
	c := &Browser{t: t, s: s}
	if len(session) > 0 {
		c.session = session[1]
	}
	return c
}

// Header has the cookies.
func (c *Browser) Header() []string {
	cookies := strings.Trim(c.session+"; "+c.Cookie, "; ")
	if cookies == "" {
		return nil
	}
	return []string{"Cookie", cookies}
}

// Options asks for options, and keeps the cookie of their challenge.
func (c *Browser) Options(path string) []byte {
	c.t.Helper()
	response := c.s.Send(c.t, "GET", PasskeyPath+path, "", c.Header()...)
	text := ReadAll(c.t, response)
	if response.StatusCode != 200 {
		c.t.Fatalf("%s: %s", path, text)
	}
	c.Cookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return []byte(text)
}

// PasskeyRegistration is the request to add a passkey.
func PasskeyRegistration(response []byte, name string) string {
	return fmt.Sprintf(`{"response":%s,"name":%q}`, response, name)
}

// PasskeyAuthentication is the request to sign in with a passkey.
func PasskeyAuthentication(response []byte) string { return fmt.Sprintf(`{"response":%s}`, response) }

// AddPasskey registers the passkey of an authenticator.
func (c *Browser) AddPasskey(a *passkeytest.Authenticator) {
	c.t.Helper()
	response := a.Register(c.t, c.Options("generate-register-options"))
	if got := c.s.Call(c.t, "POST", PasskeyPath+"verify-registration", PasskeyRegistration(response, "laptop"), c.Header()...); got.Status != 200 {
		c.t.Fatalf("verify-registration: %+v", got)
	}
}
