package api

import "net/http"

// deleteWebhook answers DELETE /v2/webhooks/{id}: no new delivery attempt starts.
func (s *Server) deleteWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	if err := s.Webhooks.Delete(r.Context(), by.Caller, by.id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
