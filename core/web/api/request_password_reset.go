package api

import "net/http"

// requestPasswordReset answers POST /auth/request-password-reset: it mails a link if an account has the address. The response and
// its timing are the same if none has.
func (s *Server) requestPasswordReset(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Email      string           `json:"email"`
		RedirectTo nullable[string] `json:"redirectTo"`
	}](r)
	if err != nil {
		return err
	}
	if err := s.Identity.RequestPasswordReset(r.Context(), s.client(r), request.Email, request.RedirectTo.get()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		Status  bool   `json:"status"`
		Message string `json:"message"`
	}{true, "If an account has this address, a link to a new password is on its way to it."})
}
