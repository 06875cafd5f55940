package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// resetPassword answers POST /auth/reset-password: it sets the password of the token's account and ends all of its sessions. If
// the account never proved its address, the password may be that of a new account, see identity.ResetPassword.
func (s *Server) resetPassword(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		NewPassword    string `json:"newPassword"`
		Token          string `json:"token"`
		UnlinkAccounts bool   `json:"unlinkAccounts"`
	}](r)
	if err != nil {
		return err
	}
	reset, err := s.Identity.Persons.ResetPassword(r.Context(), s.client(r), identity.ResetRequest{
		Token: request.Token, NewPassword: request.NewPassword, UnlinkAccounts: request.UnlinkAccounts,
	})
	if err != nil {
		return err
	}
	s.cookie.KnowDevice(w, reset.Device)
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
