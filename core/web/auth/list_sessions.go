package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// listSessions answers GET /auth/list-sessions with the account's live sessions, newest first.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	_, owner, err := authenticate(r)
	if err != nil {
		return err
	}
	sessions, err := s.Identity.Sessions.List(r.Context(), owner.ID)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, route.Each(sessions, newSessionJSON))
}
