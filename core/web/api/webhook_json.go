package api

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

// webhookJSON is an endpoint without its secret.
type webhookJSON struct {
	ID             string              `json:"id"`
	URL            string              `json:"url"`
	Types          []string            `json:"types"`
	Description    *string             `json:"description"`
	Environment    network.Environment `json:"environment"`
	Enabled        bool                `json:"enabled"`
	DisabledReason *webhooks.Reason    `json:"disabledReason"`
	CreatedAt      transfer.Timestamp  `json:"createdAt"`
	UpdatedAt      transfer.Timestamp  `json:"updatedAt"`
}

func newWebhookJSON(e *webhooks.Endpoint) webhookJSON {
	return webhookJSON{
		ID: e.ID.String(), URL: e.URL, Types: e.Types, Description: transfer.Optional(e.Description), Environment: e.Environment,
		Enabled: e.Enabled, DisabledReason: transfer.Optional(e.DisabledReason),
		CreatedAt: transfer.NewTimestamp(e.CreatedAt), UpdatedAt: transfer.NewTimestamp(e.UpdatedAt),
	}
}

// deliveryJSON is the delivery of an event to an endpoint.
type deliveryJSON struct {
	EventID        string              `json:"eventId"`
	Type           feed.Type           `json:"type"`
	Status         webhooks.Status     `json:"status"`
	Attempts       int                 `json:"attempts"`
	NextAttemptAt  *transfer.Timestamp `json:"nextAttemptAt"`
	ResponseStatus *int                `json:"responseStatus"`
	Error          *string             `json:"error"`
	UpdatedAt      transfer.Timestamp  `json:"updatedAt"`
}

func newDeliveryJSON(d webhooks.Delivery) deliveryJSON {
	answer := deliveryJSON{
		EventID: d.EventID.String(), Type: d.Type, Status: d.Status, Attempts: d.Attempts,
		NextAttemptAt: transfer.OptionalTimestamp(d.NextAttemptAt), Error: transfer.Optional(d.Error),
		UpdatedAt: transfer.NewTimestamp(d.UpdatedAt),
	}
	if d.ResponseStatus != 0 {
		answer.ResponseStatus = &d.ResponseStatus
	}
	return answer
}

// patternCreateWebhook is the route of new webhooks, the only one that honors an Idempotency-Key.
const patternCreateWebhook = "POST /v2/webhooks"

// webhookRoutes are the routes of webhooks, all of which need the operator's rules for webhooks.
func (s *Server) webhookRoutes() []route.Route {
	var routes []route.Route
	for pattern, answer := range map[string]func(http.ResponseWriter, *http.Request, webhookRequest) error{
		patternCreateWebhook:                                s.createWebhook,
		"GET /v2/webhooks":                                  s.listWebhooks,
		"GET /v2/webhooks/{id}":                             s.getWebhook,
		"PATCH /v2/webhooks/{id}":                           s.updateWebhook,
		"DELETE /v2/webhooks/{id}":                          s.deleteWebhook,
		"POST /v2/webhooks/{id}/rotate-secret":              s.rotateWebhookSecret,
		"POST /v2/webhooks/{id}/test":                       s.testWebhook,
		"GET /v2/webhooks/{id}/deliveries":                  s.listDeliveries,
		"GET /v2/webhooks/{id}/deliveries/{eventId}":        s.getDelivery,
		"POST /v2/webhooks/{id}/deliveries/{eventId}/retry": s.retryDelivery,
		"POST /v2/webhooks/{id}/replay":                     s.replayWebhook,
	} {
		routes = append(routes, route.Route{
			Pattern: pattern, Endpoint: s.ofWebhooks(answer), Fallback: webhookFallback, Idempotent: pattern == patternCreateWebhook,
		})
	}
	return routes
}

// webhookRequest is the common part of the requests to webhook routes.
type webhookRequest struct {
	webhooks.Caller
	// id is the endpoint id in the path, zero if there is none or it is malformed; no endpoint has the zero id.
	id uuid.UUID
}

// ofWebhooks parses the caller and the endpoint. Only the list of deliveries has query parameters.
func (s *Server) ofWebhooks(answer func(http.ResponseWriter, *http.Request, webhookRequest) error) route.Endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !s.Webhooks.Configured() {
			return webhooks.ErrNotConfigured
		}
		by, err := caller(r)
		if err != nil {
			return err
		}
		if r.Pattern != "GET /v2/webhooks/{id}/deliveries" {
			if _, err := route.Query(r); err != nil {
				return err
			}
		}
		owner := feed.Owner{AccountID: by.AccountID, Environment: by.Environment}
		request := webhookRequest{Caller: webhooks.Key(owner, by.KeyID, identity.ClientOf(r, identity.Cookie{}))}
		request.id, _ = route.ParseUUID(r.PathValue("id"))
		return answer(w, r, request)
	}
}
