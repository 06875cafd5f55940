package identity_test

import (
	"net/http"
	"testing"

	"intents.internal/core/identity"
)

func TestClientOf_Address(t *testing.T) {
	t.Parallel()
	for forwarded, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "203.0.113.7:5678": "203.0.113.7", "[2001:db8::1]:443": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
		"::ffff:203.0.113.7": "203.0.113.7", "203.0.113.7, 10.0.0.1": "203.0.113.7", "unknown": "", "": "",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", forwarded)
		if got := identity.ClientOf(request, identity.NewCookie("https://intents.example")).IP; got != want {
			t.Errorf("%q: %q, want %q", forwarded, got, want)
		}
	}
}
