package access

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// FlowCookie is how a browser bears a sign-in with OpenID Connect that it has begun: the flow, and the path on this site
// to go to afterwards. Lax lets it come along when the provider sends the browser back.
type FlowCookie struct{ cookie Cookie }

// NewFlowCookie takes the URL at which browsers reach the service.
func NewFlowCookie(publicURL string) FlowCookie {
	c := NewCookie(publicURL)
	c.name = "oidc"
	return FlowCookie{cookie: c}
}

// Set keeps a flow for as long as it can be finished.
func (c FlowCookie) Set(w http.ResponseWriter, flow, callback string) {
	c.cookie.set(w, flow+"~"+base64.RawURLEncoding.EncodeToString([]byte(callback)), flowLifetime)
	w.Header().Set("Cache-Control", "no-store")
}

// Clear takes the flow from the browser.
func (c FlowCookie) Clear(w http.ResponseWriter) { c.cookie.Clear(w) }

// Flow is what the request's cookie bears, empty without one. The browser could have changed both.
func (c FlowCookie) Flow(r *http.Request) (flow, callback string) {
	flow, encoded, _ := strings.Cut(c.cookie.Token(r), "~")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return flow, ""
	}
	return flow, string(decoded)
}

// LocalPath tells whether a browser stays on this site when it is sent to path. Browsers read `\` as `/` and skip tabs
// and line feeds, so these would make a host of what looks like a path.
func LocalPath(path string) bool {
	return len(path) <= 1024 && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}
