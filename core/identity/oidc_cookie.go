package identity

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// FlowCookie is the cookie of a sign-in in progress: the flow, and the path on this site to redirect to afterwards. SameSite=Lax
// includes it in the redirect from the provider.
type FlowCookie struct{ cookie Cookie }

// NewFlowCookie takes the URL at which browsers reach the service.
func NewFlowCookie(publicURL string) FlowCookie {
	c := NewCookie(publicURL)
	c.name = "oidc"
	return FlowCookie{cookie: c}
}

// Set sets the cookie for the flow's lifetime.
func (c FlowCookie) Set(w http.ResponseWriter, flow, callback string) {
	c.cookie.set(w, flow+"~"+base64.RawURLEncoding.EncodeToString([]byte(callback)), flowLifetime)
	w.Header().Set("Cache-Control", "no-store")
}

// Clear deletes the cookie.
func (c FlowCookie) Clear(w http.ResponseWriter) { c.cookie.Clear(w) }

// Flow is the content of the request's cookie, empty without one. The browser may have changed it.
func (c FlowCookie) Flow(r *http.Request) (flow, callback string) {
	flow, encoded, _ := strings.Cut(c.cookie.Token(r), "~")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return flow, ""
	}
	return flow, string(decoded)
}

// LocalPath reports whether a redirect to path stays on this site. Browsers read `\` as `/` and skip tabs and line feeds, which would
// turn a path into a host.
func LocalPath(path string) bool {
	return len(path) <= 1024 && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}
