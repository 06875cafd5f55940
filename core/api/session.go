package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"intents.internal/core/account"
)

// cookie is how a browser bears its session. Over TLS the __Host- prefix binds it to this host, so that no sibling
// domain can set it (RFC 6265bis section 4.1.3.2).
type cookie struct {
	name   string
	secure bool
}

func newCookie(publicURL string) cookie {
	if strings.HasPrefix(publicURL, "https://") {
		return cookie{name: "__Host-intents.session", secure: true}
	}
	return cookie{name: "intents.session"}
}

func (c cookie) set(w http.ResponseWriter, token string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure follows the scheme: a browser would not keep the cookie over plain http
		Name: c.name, Value: token, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

func (c cookie) clear(w http.ResponseWriter) { c.set(w, "", -time.Second) }

// signedIn finds the session a request bears, or returns errSignedOut.
func (s *Server) signedIn(r *http.Request) (*account.Session, *account.Account, error) {
	held, err := r.Cookie(s.cookie.name)
	if err != nil {
		return nil, nil, errSignedOut
	}
	session, owner, err := s.Store.Session(r.Context(), account.HashToken(held.Value), time.Now())
	if errors.Is(err, account.ErrNotFound) {
		return nil, nil, errSignedOut
	}
	return session, owner, err
}

// startSession signs the browser in. A session it held before ends, so that one planted by somebody else is of no use.
func (s *Server) startSession(w http.ResponseWriter, r *http.Request, owner *account.Account) error {
	if held, err := r.Cookie(s.cookie.name); err == nil {
		if err := s.Store.DeleteSession(r.Context(), account.HashToken(held.Value)); err != nil {
			return err
		}
	}
	session, token, err := account.NewSession(owner.ID, r.Header.Get("X-Forwarded-For"), r.UserAgent(), time.Now())
	if err != nil {
		return err
	}
	if err := s.Store.InsertSession(r.Context(), session); err != nil {
		return err
	}
	s.cookie.set(w, token, account.SessionLifetime)
	w.Header().Set("Cache-Control", "no-store")
	return nil
}

// userJSON is an account in better-auth's words.
type userJSON struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Email         string    `json:"email"`
	EmailVerified bool      `json:"emailVerified"`
	Image         *string   `json:"image"`
	CreatedAt     timestamp `json:"createdAt"`
	UpdatedAt     timestamp `json:"updatedAt"`
}

func newUserJSON(a *account.Account) userJSON {
	return userJSON{
		ID: a.ID.String(), Name: a.Name, Email: a.Email,
		CreatedAt: timestamp(a.CreatedAt), UpdatedAt: timestamp(a.UpdatedAt),
	}
}

// signedInJSON answers sign-up and sign-in. The token is null: it is in the HttpOnly cookie, out of scripts' reach.
type signedInJSON struct {
	Redirect bool     `json:"redirect"`
	Token    *string  `json:"token"`
	User     userJSON `json:"user"`
}
