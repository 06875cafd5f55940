package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// deleteKey answers POST /auth/api-key/delete: the key is rejected from then on.
func (s *Server) deleteKey(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		KeyID string `json:"keyId"`
	}](r)
	if err != nil {
		return err
	}
	keyID, err := parseID(request.KeyID)
	if err != nil {
		return err
	}
	if err := s.Identity.Keys.Delete(r.Context(), s.client(r), identity.PrincipalOf(r), keyID); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]bool{"success": true})
}
