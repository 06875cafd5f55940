package api

import (
	"net/http"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// replayWebhook answers POST /v2/webhooks/{id}/replay: it redelivers every event after a cursor of the feed, with the same ids.
func (s *Server) replayWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	body, err := route.Decode[struct {
		After string `json:"after"`
	}](r)
	if err != nil {
		return err
	}
	position, err := feed.ParseCursor(by.owner, body.After)
	if err != nil {
		return route.Invalid(wire.Issue{Path: "/after", Message: err.Error()})
	}
	entry, err := by.entry(account.WebhookReplayed)
	if err != nil {
		return err
	}
	if err := s.Webhooks.ReplayWebhook(r.Context(), by.grant, by.owner, by.id, position, entry); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
