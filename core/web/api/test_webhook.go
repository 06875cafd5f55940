package api

import "net/http"

// testWebhook answers POST /v2/webhooks/{id}/test: it sends a webhook.test event to the endpoint, regardless of its filter.
func (s *Server) testWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	id, err := s.Webhooks.TestWebhook(r.Context(), by.grant, by.owner, by.id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, map[string]string{"eventId": id.String()})
}
