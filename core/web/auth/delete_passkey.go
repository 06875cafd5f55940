package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// deletePasskey answers POST /auth/passkey/delete-passkey.
func (s *Server) deletePasskey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ID string `json:"id"`
	}](r)
	if err != nil {
		return err
	}
	id, err := parseID(request.ID)
	if err != nil {
		return account.ErrNoPasskey
	}
	if err := s.Identity.Persons.DeletePasskey(r.Context(), s.client(r), identity.PrincipalOf(r), id); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
