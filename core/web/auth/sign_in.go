package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// signIn answers POST /auth/sign-in/email. A wrong password and an address without an account get the same response in the same
// time.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Email       string                 `json:"email"`
		Password    string                 `json:"password"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
		RememberMe  route.Nullable[bool]   `json:"rememberMe"`
	}](r)
	if err != nil {
		return err
	}
	client := s.client(r)
	client.EndsWithBrowser = request.RememberMe.Value != nil && !*request.RememberMe.Value
	in, err := s.Identity.Persons.SignIn(r.Context(), client, request.Email, request.Password)
	if err != nil {
		return err
	}
	return s.writeSignedIn(w, in)
}
