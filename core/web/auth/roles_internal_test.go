package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/pkg/telemetry"
)

// Every route below /auth says what it needs of a session: nothing, a person, or, for a key, a role. A route that says nothing is refused to
// everybody.
func TestSessionRoutes_Needs(t *testing.T) {
	t.Parallel()
	anyone := map[string]bool{
		"/auth/sign-up/email": true, "/auth/sign-in/email": true, "/auth/sign-out": true, "/auth/get-session": true,
		"/auth/request-password-reset": true, "/auth/reset-password": true,
		"/auth/send-verification-email": true, "/auth/verify-email": true, "/auth/siwe/nonce": true, "/auth/siwe/verify": true,
		"/auth/passkey/generate-authenticate-options": true, "/auth/passkey/verify-authentication": true, "/auth/sign-in/oauth2": true, identity.OIDCCallbackPath: true,
	}
	s := &Server{}
	for path, route := range s.sessionRoutes() {
		want := identity.Person
		switch {
		case anyone[path]:
			want = identity.Anyone
		case strings.HasPrefix(path, "/auth/api-key/") && route.method == http.MethodGet:
			want = identity.Read
		case strings.HasPrefix(path, "/auth/api-key/"):
			want = identity.Develop
		}
		if route.need != want {
			t.Errorf("%s needs %d, want %d", path, route.need, want)
		}
	}
}

func TestRequire_Nobody(t *testing.T) {
	t.Parallel()
	s := &Server{Config: Config{Identity: identity.New(identity.Config{Metrics: telemetry.NewRegistry()})}}
	answer := s.require(identity.Person, func(http.ResponseWriter, *http.Request) error { t.Error("called"); return nil })
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err := answer(httptest.NewRecorder(), request); !errors.Is(err, identity.ErrSignedOut) {
		t.Errorf("without a session: %v", err)
	}
}
