package api

import (
	"net/http"

	"intents.internal/core/identity"
)

// changePassword answers POST /auth/change-password: every session of the account ends, and the cookie gets a new one. The other
// sessions end even without revokeOtherSessions, because others may know the old password.
func (s *Server) changePassword(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		CurrentPassword     string         `json:"currentPassword"`
		NewPassword         string         `json:"newPassword"`
		RevokeOtherSessions nullable[bool] `json:"revokeOtherSessions"`
	}](r)
	if err != nil {
		return err
	}
	in, err := s.Identity.ChangePassword(r.Context(), s.client(r), identity.PrincipalOf(r), request.CurrentPassword, request.NewPassword)
	if err != nil {
		return err
	}
	s.cookie.SignIn(w, in)
	return writeJSON(w, http.StatusOK, struct {
		Token *string  `json:"token"`
		User  userJSON `json:"user"`
	}{nil, newUserJSON(in.Account)})
}
