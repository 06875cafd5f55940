package api

import (
	"net/http"
	"time"

	"intents.internal/core/account"
)

// signUp answers POST /auth/sign-up/email: it makes an account and signs it in.
func (s *Server) signUp(w http.ResponseWriter, r *http.Request) error {
	if !s.SignUpOpen {
		return errSignUpShut
	}
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
	if _, err := account.ParseEmail(request.Email); err != nil {
		return err
	}
	hash, err := s.Passwords.Hash(r.Context(), request.Password)
	if err != nil {
		return err
	}
	created, err := account.New(request.Name, request.Email, hash, time.Now())
	if err != nil {
		return err
	}
	if err := s.Store.InsertAccount(r.Context(), created); err != nil {
		return err
	}
	if err := s.startSession(w, r, created); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, signedInJSON{User: newUserJSON(created)})
}
