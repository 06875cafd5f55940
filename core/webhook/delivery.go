package webhook

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/event"
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	WebhookID uuid.UUID
	EventID   event.ID
	// Position is the event's in the feed; that of a test event, which the feed does not have, is taken from the clock.
	Position int64
	Type     event.Type
	Status   Status
	// Attempts counts those since the delivery was made, retried or replayed.
	Attempts int
	// NextAttemptAt is when a Pending delivery is due, nil for others.
	NextAttemptAt *time.Time
	// ResponseStatus is the last answer's, 0 for none.
	ResponseStatus int
	// Error says why the last attempt failed, empty where it did not.
	Error     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// DisabledData are the data of the event webhook.disabled.
type DisabledData struct {
	ID     uuid.UUID `json:"id"`
	URL    string    `json:"url"`
	Reason Reason    `json:"reason"`
}

// TestEvent is the event webhook.test of a delivery, which the feed does not have.
func (e *Endpoint) TestEvent(d Delivery) (*event.Event, error) {
	data, err := json.Marshal(struct {
		ID  uuid.UUID `json:"id"`
		URL string    `json:"url"`
	}{e.ID, e.URL})
	if err != nil {
		return nil, err
	}
	return &event.Event{
		ID: d.EventID, Type: event.TypeWebhookTest, AccountID: e.AccountID, Environment: e.Environment, At: d.CreatedAt, Data: data,
	}, nil
}

// DeliveryQuery asks for deliveries of an endpoint, newest first.
type DeliveryQuery struct {
	// Status is empty for all.
	Status Status
	// After is where the page before ended, nil for the newest.
	After *DeliveryCursor
	Limit int
}

// DeliveryCursor is the place of a delivery in its endpoint's list.
type DeliveryCursor struct {
	Position int64
	EventID  event.ID
}

// ErrDeliveryCursor is returned for text that is no cursor.
var ErrDeliveryCursor = errors.New("is not a cursor of this list; take it from next")

// String is the form for URLs.
func (c DeliveryCursor) String() string {
	id := uuid.UUID(c.EventID)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(id[:], uint64(c.Position))) //nolint:gosec // positions are not negative
}

// ParseDeliveryCursor reads what String wrote.
func ParseDeliveryCursor(text string) (*DeliveryCursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 16+8 {
		return nil, ErrDeliveryCursor
	}
	position := int64(binary.BigEndian.Uint64(raw[16:])) //nolint:gosec // checked on the next line
	if position < 0 {
		return nil, ErrDeliveryCursor
	}
	return &DeliveryCursor{Position: position, EventID: event.ID(raw[:16])}, nil
}
