package api

import "net/http"

// signUp answers POST /auth/sign-up/email: it makes an account and signs it in.
func (s *Server) signUp(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Name        string  `json:"name"`
		Email       string  `json:"email"`
		Password    string  `json:"password"`
		Image       *string `json:"image"`
		CallbackURL *string `json:"callbackURL"`
		RememberMe  *bool   `json:"rememberMe"`
	}](r)
	if err != nil {
		return err
	}
	in, err := s.Access.SignUp(r.Context(), s.visitor(r), request.Name, request.Email, request.Password)
	if err != nil {
		return err
	}
	return s.writeSignedIn(w, in)
}
