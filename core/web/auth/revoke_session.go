package auth

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
)

// revokeSession answers POST /auth/revoke-session: it ends the session. A session of another account is unchanged and gets the
// same response, as in better-auth.
func (s *Server) revokeSession(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Token string `json:"token"`
	}](r)
	if err != nil {
		return err
	}
	sessionID, err := parseID(request.Token)
	if err == nil {
		err = s.Identity.Sessions.Revoke(r.Context(), s.client(r), identity.PrincipalOf(r), sessionID)
	}
	if err != nil && !errors.Is(err, account.ErrNotFound) {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}

// revokeOtherSessions answers POST /auth/revoke-other-sessions: it ends all sessions of the account except the current one.
func (s *Server) revokeOtherSessions(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Identity.Sessions.RevokeOthers(r.Context(), s.client(r), identity.PrincipalOf(r)); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}

// revokeSessions answers POST /auth/revoke-sessions: it ends all sessions of the account.
func (s *Server) revokeSessions(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Identity.Sessions.RevokeAll(r.Context(), s.client(r), identity.PrincipalOf(r)); err != nil {
		return err
	}
	s.cookie.Clear(w)
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
