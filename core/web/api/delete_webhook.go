package api

import (
	"net/http"

	"intents.internal/core/identity/account"
)

// deleteWebhook answers DELETE /v2/webhooks/{id}: no new delivery attempt starts.
func (s *Server) deleteWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	entry, err := by.entry(account.WebhookDeleted)
	if err != nil {
		return err
	}
	if err := s.Webhooks.DeleteWebhook(r.Context(), by.grant, by.owner, by.id, entry); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
