package api

import (
	"net/http"

	"intents.internal/core/web/route"
)

// getWebhook answers GET /v2/webhooks/{id}. An endpoint of another account or environment gets the same response as one that does
// not exist.
func (s *Server) getWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	found, err := s.Webhooks.Find(r.Context(), by.Owner, by.id)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newWebhookJSON(found))
}
