package api

import "net/http"

// resetPassword answers POST /auth/reset-password: it sets the password of the token's account and ends all of its sessions. If
// the old password never proved the address, the account is replaced by a new one with this password.
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
