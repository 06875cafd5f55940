package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// generateRegisterOptions answers GET /auth/passkey/generate-register-options with what the browser creates a passkey by. The challenge is
// in the cookie too.
func (s *Server) generateRegisterOptions(w http.ResponseWriter, r *http.Request) error {
	given, err := route.Query(r, "name", "authenticatorAttachment")
	if err != nil {
		return err
	}
	begun, err := s.Identity.Persons.StartRegistration(r.Context(), s.client(r), identity.PrincipalOf(r), given["name"], given["authenticatorAttachment"])
	if err != nil {
		return err
	}
	s.cookie.BeginCeremony(w, begun.Cookie)
	return route.WriteJSON(w, http.StatusOK, newCreationOptionsJSON(begun.Options))
}
