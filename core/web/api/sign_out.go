package api

import "net/http"

// signOut answers POST /auth/sign-out: it ends the session, if there is one.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.Access.SignOut(r.Context(), s.visitor(r)); err != nil {
		return err
	}
	s.cookie.Clear(w)
	return writeJSON(w, http.StatusOK, map[string]bool{"success": true})
}
