package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// signOut answers POST /auth/sign-out: it ends the session, if there is one.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.Identity.Sessions.SignOut(r.Context(), s.client(r)); err != nil {
		return err
	}
	s.cookie.Clear(w)
	return route.WriteJSON(w, http.StatusOK, map[string]bool{"success": true})
}
