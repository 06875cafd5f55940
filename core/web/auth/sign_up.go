package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// signUp answers POST /auth/sign-up/email: it creates an account and signs it in. If mail is configured, an address that has an
// account gets the same response, and nobody is signed in.
func (s *Server) signUp(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Name        string                 `json:"name"`
		Email       string                 `json:"email"`
		Password    string                 `json:"password"`
		Image       route.Nullable[string] `json:"image"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
		RememberMe  route.Nullable[bool]   `json:"rememberMe"`
	}](r)
	if err != nil {
		return err
	}
	client := s.client(r)
	client.EndsWithBrowser = request.RememberMe.Value != nil && !*request.RememberMe.Value
	in, err := s.Identity.Persons.SignUp(r.Context(), client, request.Name, request.Email, request.Password, request.CallbackURL.Get())
	if err != nil {
		return err
	}
	if in.Session == nil {
		return route.WriteJSON(w, http.StatusOK, signedInJSON{User: newUserJSON(in.Account)})
	}
	return s.writeSignedIn(w, in)
}
