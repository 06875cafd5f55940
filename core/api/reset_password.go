package api

import "net/http"

// resetPassword answers POST /auth/reset-password: the account of the token has another password, and nobody is signed in to it.
// The password is that of a new account if the one before never proved its address.
func (s *Server) resetPassword(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		NewPassword string `json:"newPassword"`
		Token       string `json:"token"`
	}](r)
	if err != nil {
		return err
	}
	if _, err := s.Access.ResetPassword(r.Context(), s.visitor(r), request.Token, request.NewPassword); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, statusJSON)
}
