package api

import "net/http"

// listKeys answers GET /auth/api-key/list with the account's keys, newest first.
func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := s.signedIn(r)
	if err != nil {
		return err
	}
	keys, err := s.Store.Keys(r.Context(), owner.ID)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, http.StatusOK, each(keys, newKeyJSON))
}
