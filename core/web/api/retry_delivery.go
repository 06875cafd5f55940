package api

import (
	"net/http"

	"intents.internal/core/feed"
	"intents.internal/core/webhooks"
)

// retryDelivery answers POST /v2/webhooks/{id}/deliveries/{eventId}/retry: it redelivers the event at once, with the same id.
func (s *Server) retryDelivery(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	eventID, ok := feed.ParseID(r.PathValue("eventId"))
	if !ok {
		return webhooks.ErrDeliveryNotFound
	}
	if err := s.Webhooks.RetryDelivery(r.Context(), by.Caller, by.id, eventID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
