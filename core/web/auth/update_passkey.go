package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// updatePasskey answers POST /auth/passkey/update-passkey, which renames a passkey.
func (s *Server) updatePasskey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}](r)
	if err != nil {
		return err
	}
	id, err := parseID(request.ID)
	if err != nil {
		return account.ErrNoPasskey
	}
	passkey, err := s.Identity.Persons.RenamePasskey(r.Context(), s.client(r), identity.PrincipalOf(r), id, request.Name)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]passkeyJSON{"passkey": newPasskeyJSON(passkey)})
}
