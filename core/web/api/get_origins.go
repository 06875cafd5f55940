package api

import (
	"net/http"

	"intents.internal/core/web/route"
)

type originsJSON struct {
	Origins []string `json:"origins"`
}

// getOrigins answers GET /v2/origins with the origins of pages that may call with a client token.
func (s *Server) getOrigins(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	origins, err := s.Identities.Origins(r.Context(), by.AccountID)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, originsJSON{append([]string{}, origins...)})
}
