package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// deleteUser answers POST /auth/delete-user: it deletes the account permanently. Its password confirms that; an account without
// one needs a fresh session.
func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Password    string                 `json:"password"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
	}](r)
	if err != nil {
		return err
	}
	if err := s.Identity.Persons.DeleteAccount(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r)); err != nil {
		return err
	}
	s.cookie.Clear(w)
	return route.WriteJSON(w, http.StatusOK, struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
	}{true, "User deleted"})
}
