package api

import (
	"net/http"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
)

// retryDelivery answers POST /v2/webhooks/{id}/deliveries/{eventId}/retry: it redelivers the event at once, with the same id.
func (s *Server) retryDelivery(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	eventID, ok := event.ParseID(r.PathValue("eventId"))
	if !ok {
		return webhook.ErrDeliveryNotFound
	}
	if err := s.Webhooks.RetryDelivery(r.Context(), by.grant, by.owner, by.id, eventID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
