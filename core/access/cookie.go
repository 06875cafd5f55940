package access

import (
	"net/http"
	"strings"
	"time"

	"intents.internal/core/account"
)

// Cookie is how a browser bears its session.
type Cookie struct {
	name   string
	secure bool
}

// NewCookie takes the URL at which browsers reach the service. Over TLS the __Host- prefix binds the cookie to that host,
// so that no sibling domain can set it (RFC 6265bis section 4.1.3.2).
func NewCookie(publicURL string) Cookie {
	if strings.HasPrefix(publicURL, "https://") {
		return Cookie{name: "__Host-intents.session", secure: true}
	}
	return Cookie{name: "intents.session"}
}

// Set gives the browser a session's token. The answer must not be stored by anyone, so it says so.
func (c Cookie) Set(w http.ResponseWriter, token string) {
	c.set(w, token, account.SessionLifetime)
	w.Header().Set("Cache-Control", "no-store")
}

// Clear takes the token from the browser.
func (c Cookie) Clear(w http.ResponseWriter) { c.set(w, "", -time.Second) }

func (c Cookie) set(w http.ResponseWriter, token string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure follows the scheme: a browser would not keep the cookie over plain http
		Name: c.name, Value: token, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// Token is what the request's cookie bears, empty without one.
func (c Cookie) Token(r *http.Request) string {
	held, err := r.Cookie(c.name)
	if err != nil {
		return ""
	}
	return held.Value
}

// VisitorOf is who makes a request that a gateway passed on.
func VisitorOf(r *http.Request, c Cookie) Visitor {
	return Visitor{IP: r.Header.Get("X-Forwarded-For"), UserAgent: r.UserAgent(), Token: c.Token(r)}
}
