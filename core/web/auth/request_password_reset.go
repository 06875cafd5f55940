package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// requestPasswordReset answers POST /auth/request-password-reset: it mails a link if an account has the address. The response and
// its timing are the same if none has.
func (s *Server) requestPasswordReset(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Email      string                 `json:"email"`
		RedirectTo route.Nullable[string] `json:"redirectTo"`
	}](r)
	if err != nil {
		return err
	}
	if err := s.Identity.Persons.RequestPasswordReset(r.Context(), s.client(r), request.Email, request.RedirectTo.Get()); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		Status  bool   `json:"status"`
		Message string `json:"message"`
	}{true, "If an account has this address, a link to a new password is on its way to it."})
}
