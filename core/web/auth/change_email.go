package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// changeEmail answers POST /auth/change-email: it mails a link to the account's address if that is verified, otherwise to the new
// one. The response is the same if another account has the new address.
func (s *Server) changeEmail(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		NewEmail    string                 `json:"newEmail"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
		Password    string                 `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	err = s.Identity.Persons.ChangeEmail(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), request.NewEmail, request.CallbackURL.Get())
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
