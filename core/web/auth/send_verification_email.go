package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// sendVerificationEmail answers POST /auth/send-verification-email: it mails a link if an account has the address and has not
// verified it. Without a session the response and its timing are the same if none has.
func (s *Server) sendVerificationEmail(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Email       string                 `json:"email"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
	}](r)
	if err != nil {
		return err
	}
	if err := s.Identity.Persons.SendVerificationEmail(r.Context(), s.client(r), request.Email, request.CallbackURL.Get()); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
