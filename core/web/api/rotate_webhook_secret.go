package api

import (
	"net/http"

	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
)

// rotateWebhookSecret answers POST /v2/webhooks/{id}/rotate-secret with the new secret, which is shown only here. The old secret
// signs too until its grace period ends. The body is optional.
func (s *Server) rotateWebhookSecret(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	grace := webhooks.DefaultGrace
	if r.ContentLength != 0 {
		body, err := route.Decode[struct {
			GracePeriod *int64 `json:"gracePeriod"`
		}](r)
		if err != nil {
			return err
		}
		if body.GracePeriod != nil {
			if grace, err = webhooks.ParseGracePeriod(*body.GracePeriod); err != nil {
				return err
			}
		}
	}
	_, secret, err := s.Webhooks.RotateSecret(r.Context(), by.Caller, by.id, grace)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]string{"secret": secret.Reveal()})
}
