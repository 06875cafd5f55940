package api

import (
	"net/http"

	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/wire"
)

// updateWebhook answers PATCH /v2/webhooks/{id}. An absent field is unchanged; null types mean all types, a null description
// means none.
func (s *Server) updateWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	body, err := route.Decode[struct {
		URL         *string                  `json:"url"`
		Types       route.Nullable[[]string] `json:"types"`
		Description route.Nullable[string]   `json:"description"`
		Enabled     *bool                    `json:"enabled"`
	}](r)
	if err != nil {
		return err
	}
	change := webhooks.Change{URL: body.URL, Types: body.Types.OrZero(), Description: body.Description.OrZero(), Enabled: body.Enabled}
	if change == (webhooks.Change{}) {
		return route.Invalid(wire.Issue{Message: "names nothing to change; give url, types, description or enabled"})
	}
	changed, err := s.Webhooks.Update(r.Context(), by.Caller, by.id, change)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newWebhookJSON(changed))
}
