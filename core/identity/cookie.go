package identity

import (
	"net/http"
	"strings"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/forwarded"
	"intents.internal/pkg/network"
)

// deviceLifetime is the longest that browsers keep a cookie (RFC 6265bis section 5.5). Each sign-in renews it.
const deviceLifetime = 400 * 24 * time.Hour

// Cookie is the session cookie of a browser, with its device cookie.
type Cookie struct {
	prefix, name string
	secure       bool
}

// NewCookie takes the URL at which browsers reach the service. Over TLS the __Host- prefix binds the cookie to that host,
// so that no sibling domain can set it (RFC 6265bis section 4.1.3.2).
func NewCookie(publicURL string) Cookie {
	if strings.HasPrefix(publicURL, "https://") {
		return Cookie{prefix: "__Host-intents.", name: "session", secure: true}
	}
	return Cookie{prefix: "intents.", name: "session"}
}

// SignIn sets the session cookie, and the device cookie if a password was checked. Of a session that ends with the browser
// nothing stays: its cookie has no lifetime, and the device is not known afterwards.
func (c Cookie) SignIn(w http.ResponseWriter, in *SignedIn) {
	if in.Session.EndsWithBrowser() {
		c.set(w, in.Token, 0)
	} else {
		c.set(w, in.Token, account.SessionLifetime)
		if in.Device != "" {
			c.KnowDevice(w, in.Device)
		}
	}
}

// KnowDevice sets the device cookie.
func (c Cookie) KnowDevice(w http.ResponseWriter, device string) {
	c.device().set(w, device, deviceLifetime)
}

// Secure reports whether browsers reach the service over TLS.
func (c Cookie) Secure() bool { return c.secure }

// Clear deletes the session cookie.
func (c Cookie) Clear(w http.ResponseWriter) { c.set(w, "", -time.Second) }

func (c Cookie) device() Cookie {
	c.name = "device"
	return c
}

// BeginCeremony sets the cookie of a WebAuthn challenge.
func (c Cookie) BeginCeremony(w http.ResponseWriter, value string) {
	c.passkey().set(w, value, ChallengeLifetime)
}

// Ceremony is the value of the request's cookie of a WebAuthn challenge, empty without one.
func (c Cookie) Ceremony(r *http.Request) string { return c.passkey().Token(r) }

// EndCeremony deletes the cookie of a WebAuthn challenge.
func (c Cookie) EndCeremony(w http.ResponseWriter) { c.passkey().Clear(w) }

// ShowEnvironment sets the cookie of the environment that the console shows.
func (c Cookie) ShowEnvironment(w http.ResponseWriter, shown network.Environment) {
	c.environment().set(w, string(shown), deviceLifetime)
}

// Environment is that of the request's cookie; ok is false without one.
func (c Cookie) Environment(r *http.Request) (shown network.Environment, ok bool) {
	shown, err := network.Parse(c.environment().Token(r))
	return shown, err == nil
}

func (c Cookie) environment() Cookie {
	c.name = "environment"
	return c
}

func (c Cookie) passkey() Cookie {
	c.name = "passkey"
	return c
}

// set leaves Max-Age out for a lifetime of zero, so that the browser drops the cookie when it ends.
func (c Cookie) set(w http.ResponseWriter, value string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure follows the scheme: a browser would not keep the cookie over plain http
		Name: c.prefix + c.name, Value: value, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// Token is the value of the request's cookie, empty without one.
func (c Cookie) Token(r *http.Request) string {
	cookie, err := r.Cookie(c.prefix + c.name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// ClientOf is the browser of a request that a gateway forwarded. A proxy between gateway and core may have appended addresses to the
// gateway's X-Forwarded-For.
func ClientOf(r *http.Request, c Cookie) Client {
	client := Client{UserAgent: r.UserAgent(), Token: c.Token(r), Device: c.device().Token(r)}
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	if address, ok := forwarded.ParseAddr(strings.TrimSpace(first)); ok {
		client.IP = address.String()
	}
	if p := PrincipalOf(r); p != nil {
		client.Person = p.Person.ID
	}
	return client
}
