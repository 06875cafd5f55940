package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// getKey answers GET /auth/api-key/get?id= with one of the account's keys.
func (s *Server) getKey(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "id")
	if err != nil {
		return err
	}
	keyID, err := parseID(parameters["id"])
	if err != nil {
		return err
	}
	key, err := s.Identities.Key(r.Context(), actingID(r), keyID)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newKeyJSON(key))
}
