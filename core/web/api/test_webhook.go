package api

import (
	"net/http"
	"slices"

	"intents.internal/core/feed"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/wire"
)

// testWebhook answers POST /v2/webhooks/{id}/test: it sends a test event to the endpoint, regardless of its filter. The body is optional.
func (s *Server) testWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	kind := feed.TypeWebhookTest
	if r.ContentLength != 0 {
		body, err := route.Decode[struct {
			Type *feed.Type `json:"type"`
		}](r)
		if err != nil {
			return err
		}
		if body.Type != nil {
			kind = *body.Type
		}
	}
	if !slices.Contains(webhooks.TestTypes(), kind) {
		return route.Invalid(wire.Issue{Path: "/type", Message: "must be one of " + joinTexts(webhooks.TestTypes())})
	}
	id, err := s.Webhooks.Test(r.Context(), by.Caller, by.id, kind)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusAccepted, map[string]string{"eventId": id.String()})
}
