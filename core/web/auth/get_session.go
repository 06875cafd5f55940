package auth

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// getSession answers GET /auth/get-session with the session and its account, or with null if the browser is not signed in.
func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	session, owner, err := authenticate(r)
	if errors.Is(err, identity.ErrSignedOut) {
		return route.WriteJSON(w, http.StatusOK, nil)
	}
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		Session sessionJSON `json:"session"`
		User    userJSON    `json:"user"`
	}{newSessionJSON(session), newUserJSON(owner)})
}
