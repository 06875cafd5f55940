package api

import (
	"net/http"

	"intents.internal/core/identity/account"
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
	entry, err := by.entry(account.WebhookSecretRotated)
	if err != nil {
		return err
	}
	var secret webhooks.Secret
	_, err = s.Webhooks.ChangeWebhook(r.Context(), by.grant, by.owner, by.id, &entry, func(e *webhooks.Endpoint) (detail string, err error) {
		secret, detail, err = s.WebhookRules.Rotate(e, grace, by.now)
		return detail, err
	})
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]string{"secret": secret.Reveal()})
}
