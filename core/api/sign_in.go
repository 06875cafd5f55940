package api

import (
	"errors"
	"net/http"

	"intents.internal/core/account"
)

// signIn answers POST /auth/sign-in/email. A wrong password and an address without an account get the same answer in
// the same time.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Email       string  `json:"email"`
		Password    string  `json:"password"`
		CallbackURL *string `json:"callbackURL"`
		RememberMe  *bool   `json:"rememberMe"`
	}](r)
	if err != nil {
		return err
	}
	email, err := account.ParseEmail(request.Email)
	if err != nil {
		return err
	}
	owner, err := s.Store.AccountByEmail(r.Context(), email)
	if errors.Is(err, account.ErrNotFound) {
		owner = &account.Account{}
	} else if err != nil {
		return err
	}
	matches, err := s.Passwords.Matches(r.Context(), request.Password, owner.PasswordHash)
	if err != nil {
		return err
	}
	if !matches {
		return errCredentials
	}
	if err := s.startSession(w, r, owner); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, signedInJSON{User: newUserJSON(owner)})
}
