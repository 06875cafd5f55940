package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// changePassword answers POST /auth/change-password: every session of the account ends, and the cookie gets a new one. The other
// sessions end even without revokeOtherSessions, because others may know the old password.
func (s *Server) changePassword(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		CurrentPassword     string               `json:"currentPassword"`
		NewPassword         string               `json:"newPassword"`
		RevokeOtherSessions route.Nullable[bool] `json:"revokeOtherSessions"`
	}](r)
	if err != nil {
		return err
	}
	in, err := s.Identity.Persons.ChangePassword(r.Context(), s.client(r), identity.PrincipalOf(r), request.CurrentPassword, request.NewPassword)
	if err != nil {
		return err
	}
	s.cookie.SignIn(w, in)
	return route.WriteJSON(w, http.StatusOK, struct {
		Token *string  `json:"token"`
		User  userJSON `json:"user"`
	}{nil, newUserJSON(in.Account)})
}
