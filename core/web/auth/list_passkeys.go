package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// listPasskeys answers GET /auth/passkey/list-user-passkeys with the person's passkeys, oldest first.
func (s *Server) listPasskeys(w http.ResponseWriter, r *http.Request) error {
	passkeys, err := s.Identity.Persons.Passkeys(r.Context(), identity.PrincipalOf(r).Person.ID)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, route.Each(passkeys, newPasskeyJSON))
}
