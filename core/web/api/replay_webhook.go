package api

import (
	"net/http"

	"intents.internal/core/feed"
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
	position, err := feed.ParseCursor(by.Owner, body.After)
	if err != nil {
		return route.Invalid(wire.Issue{Path: "/after", Message: err.Error()})
	}
	if err := s.Webhooks.Replay(r.Context(), by.Caller, by.id, position); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
