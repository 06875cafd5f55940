package client

import (
	"encoding/json"
	"strings"
	"time"
)

// EventType is what has happened.
type EventType string

// Types of events. WebhookTest is posted to webhooks alone.
const (
	TransferCreated     EventType = "transfer.created"
	TransferSubmitted   EventType = "transfer.submitted"
	TransferConfirmed   EventType = "transfer.confirmed"
	TransferFilled      EventType = "transfer.filled"
	TransferRefunded    EventType = "transfer.refunded"
	TransferFailed      EventType = "transfer.failed"
	TransferExpired     EventType = "transfer.expired"
	TransferCancelled   EventType = "transfer.cancelled"
	TransferReorganized EventType = "transfer.reorganized"
	TransferRefundable  EventType = "transfer.refundable"
	TransferUpdated     EventType = "transfer.updated"
	WebhookDisabled     EventType = "webhook.disabled"
	WebhookTest         EventType = "webhook.test"
)

// Event is something that has happened. Of its data one pointer is set, by the type; of a type that this version does not know, none.
type Event struct {
	// ID is the same in the feed and in every delivery to a webhook.
	ID          string
	Type        EventType
	Timestamp   time.Time
	Environment Environment
	// Sequence counts the events of one intent from 1 without gaps, nil of a webhook's.
	Sequence *int64

	// Transfer is of types transfer.*.
	Transfer *TransferEvent
	// Webhook is of types webhook.*.
	Webhook *WebhookEvent
}

// TransferEvent is an intent as it was right after an event.
type TransferEvent struct {
	TransferSummary
	// From is the status before, nil of the first event.
	From    *TransferStatus `json:"from"`
	To      TransferStatus  `json:"to"`
	Hash    *string         `json:"hash"`
	Failure *Failure        `json:"failure"`
	// FailureReason is Failure in words, nil where that is.
	FailureReason *FailureReason `json:"failureReason"`
	// Simulated is set where Transfers.Simulate has done this: no chain has seen it.
	Simulated bool `json:"simulated,omitzero"`
}

// WebhookEvent is about a webhook.
type WebhookEvent struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Reason is why it was disabled, empty of a test.
	Reason DisabledReason `json:"reason,omitempty"`
}

// eventJSON is an event in JSON.
type eventJSON struct {
	ID          string          `json:"id,omitempty"` // left out of what is posted to webhooks
	Type        EventType       `json:"type"`
	Timestamp   time.Time       `json:"timestamp"`
	Environment Environment     `json:"environment"`
	Sequence    *int64          `json:"sequence"`
	Data        json.RawMessage `json:"data"`
}

// UnmarshalJSON reads an event of the feed, or the body of a request to a webhook, which has no id.
func (e *Event) UnmarshalJSON(text []byte) error {
	var read eventJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*e = Event{ID: read.ID, Type: read.Type, Timestamp: read.Timestamp, Environment: read.Environment, Sequence: read.Sequence}
	switch {
	case strings.HasPrefix(string(read.Type), "transfer."):
		return json.Unmarshal(read.Data, &e.Transfer)
	case strings.HasPrefix(string(read.Type), "webhook."):
		return json.Unmarshal(read.Data, &e.Webhook)
	}
	return nil
}

// MarshalJSON writes an event as the feed does.
func (e Event) MarshalJSON() ([]byte, error) {
	var data any = e.Transfer
	if e.Webhook != nil {
		data = e.Webhook
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(eventJSON{e.ID, e.Type, e.Timestamp, e.Environment, e.Sequence, text})
}
