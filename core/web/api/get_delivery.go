package api

import (
	"net/http"

	"intents.internal/core/feed"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
)

// deliveryDetailsJSON is a delivery with what was sent and what came back.
type deliveryDetailsJSON struct {
	deliveryJSON

	// TransferID is null for an event that is not an intent's, and once the event is not kept.
	TransferID *string `json:"transferId"`
	// RequestBody is null once the event is not kept.
	RequestBody *string `json:"requestBody"`
	// PastAttempts are those that are kept, newest first.
	PastAttempts []pastAttemptJSON `json:"pastAttempts"`
}

// pastAttemptJSON is an attempt. ResponseStatus and ResponseBody are null without an answer, and Error of a success.
type pastAttemptJSON struct {
	EndedAt        transfer.Timestamp `json:"endedAt"`
	DurationMS     int64              `json:"durationMs"`
	ResponseStatus *int               `json:"responseStatus"`
	ResponseBody   *string            `json:"responseBody"`
	Error          *string            `json:"error"`
}

// getDelivery answers GET /v2/webhooks/{id}/deliveries/{eventId}.
func (s *Server) getDelivery(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	eventID, ok := feed.ParseID(r.PathValue("eventId"))
	if !ok {
		return webhooks.ErrDeliveryNotFound
	}
	d, _, err := s.Webhooks.Delivery(r.Context(), by.Owner, by.id, eventID)
	if err != nil {
		return err
	}
	answer := deliveryDetailsJSON{deliveryJSON: newDeliveryJSON(d.Delivery), PastAttempts: route.Each(d.Past, newPastAttemptJSON)}
	if e := d.Event; e != nil {
		body, err := e.Body()
		if err != nil {
			return err
		}
		answer.RequestBody = new(string(body))
		if e.Transfer != nil {
			answer.TransferID = new(e.Transfer.Summary.ID.String())
		}
	}
	return route.WriteJSON(w, http.StatusOK, answer)
}

func newPastAttemptJSON(a webhooks.PastAttempt) pastAttemptJSON {
	answer := pastAttemptJSON{
		EndedAt: transfer.NewTimestamp(a.EndedAt), DurationMS: a.Duration.Milliseconds(), ResponseBody: a.ResponseBody, Error: transfer.Optional(a.Error),
	}
	if a.ResponseStatus != 0 {
		answer.ResponseStatus = &a.ResponseStatus
	}
	return answer
}
