package api

import (
	"net/http"

	"intents.internal/core/account"
	"intents.internal/core/webhook"
)

// createWebhook answers POST /v2/webhooks with the new endpoint and its secret, which is shown only here.
func (s *Server) createWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	body, err := decode[struct {
		URL         string   `json:"url"`
		Types       []string `json:"types"`
		Description string   `json:"description"`
	}](r)
	if err != nil {
		return err
	}
	created, secret, err := s.Webhooks.New(by.owner, webhook.Draft{URL: body.URL, Types: body.Types, Description: body.Description}, by.now)
	if err != nil {
		return err
	}
	entry, err := by.entry(account.WebhookCreated)
	if err != nil {
		return err
	}
	if err := s.Store.InsertWebhook(r.Context(), created, entry, [32]byte{}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, struct {
		webhookJSON
		Secret string `json:"secret"`
	}{newWebhookJSON(created), secret.Reveal()})
}
