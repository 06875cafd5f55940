package auth

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// generateAuthenticateOptions answers GET /auth/passkey/generate-authenticate-options with what the browser asks an authenticator for. The
// challenge is in the cookie too. Only the answer to somebody who is signed in names passkeys.
func (s *Server) generateAuthenticateOptions(w http.ResponseWriter, r *http.Request) error {
	principal, err := optionalSession(r)
	if err != nil {
		return err
	}
	begun, err := s.Identity.Persons.StartAuthentication(r.Context(), s.client(r), principal)
	if err != nil {
		return err
	}
	s.cookie.BeginCeremony(w, begun.Cookie)
	return route.WriteJSON(w, http.StatusOK, newRequestOptionsJSON(begun.Options))
}

// optionalSession returns the session of a request to a route that needs none, nil for nobody.
func optionalSession(r *http.Request) (*identity.Principal, error) {
	principal, err := identity.SessionOf(r)
	if errors.Is(err, identity.ErrSignedOut) {
		return nil, nil
	}
	return principal, err
}
