package api

import (
	"net/http"

	"intents.internal/core/account"
)

// signOut answers POST /auth/sign-out: the session ends, whether or not there was one.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	if held, err := r.Cookie(s.cookie.name); err == nil {
		if err := s.Store.DeleteSession(r.Context(), account.HashToken(held.Value)); err != nil {
			return err
		}
	}
	s.cookie.clear(w)
	return writeJSON(w, http.StatusOK, map[string]bool{"success": true})
}
