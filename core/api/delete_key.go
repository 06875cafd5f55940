package api

import (
	"net/http"
	"time"
)

// deleteKey answers POST /auth/api-key/delete: the key is refused from then on.
func (s *Server) deleteKey(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := s.signedIn(r)
	if err != nil {
		return err
	}
	request, err := decode[struct {
		KeyID string `json:"keyId"`
	}](r)
	if err != nil {
		return err
	}
	keyID, err := parseKeyID(request.KeyID)
	if err != nil {
		return err
	}
	if err := s.Store.DeleteKey(r.Context(), owner.ID, keyID, time.Now()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]bool{"success": true})
}
