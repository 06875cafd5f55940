package api

import (
	"net/http"

	"intents.internal/core/web/route"
)

// listWebhooks answers GET /v2/webhooks with the endpoints of the key's account and environment, newest first.
func (s *Server) listWebhooks(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	endpoints, err := s.Webhooks.List(r.Context(), by.Owner)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, route.Each(endpoints, newWebhookJSON))
}
