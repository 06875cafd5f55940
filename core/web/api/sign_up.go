package api

import "net/http"

// signUp answers POST /auth/sign-up/email: it creates an account and signs it in. If mail is configured, an address that has an
// account gets the same response, and nobody is signed in.
func (s *Server) signUp(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Name        string           `json:"name"`
		Email       string           `json:"email"`
		Password    string           `json:"password"`
		Image       nullable[string] `json:"image"`
		CallbackURL nullable[string] `json:"callbackURL"`
		RememberMe  nullable[bool]   `json:"rememberMe"`
	}](r)
	if err != nil {
		return err
	}
	client := s.client(r)
	client.EndsWithBrowser = request.RememberMe.value != nil && !*request.RememberMe.value
	in, err := s.Identity.SignUp(r.Context(), client, request.Name, request.Email, request.Password, request.CallbackURL.get())
	if err != nil {
		return err
	}
	if in.Session == nil {
		return writeJSON(w, http.StatusOK, signedInJSON{User: newUserJSON(in.Account)})
	}
	return s.writeSignedIn(w, in)
}
