package webhooks

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	WebhookID uuid.UUID
	EventID   feed.ID
	// Position is the event's position in the feed. For a test it is taken from the clock.
	Position int64
	Type     feed.Type
	// Test is true of a test event, which is not in the feed.
	Test   bool
	Status Status
	// Attempts counts the attempts since the delivery was created, retried or replayed.
	Attempts int
	// NextAttemptAt is when a Pending or Retrying delivery is due, nil for others.
	NextAttemptAt *time.Time
	// ResponseStatus is the last response's status, 0 for none.
	ResponseStatus int
	// Error is why the last attempt failed, empty if it did not.
	Error     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// DisabledData is the data of the event webhook.disabled.
type DisabledData struct {
	ID     uuid.UUID `json:"id"`
	URL    string    `json:"url"`
	Reason Reason    `json:"reason"`
}

// TestTypes returns the types of which a test can be sent: those of the feed, and webhook.test.
func TestTypes() []feed.Type { return append(feed.Types(), feed.TypeWebhookTest) }

// TestEvent returns the event of a test delivery, which is not in the feed: webhook.test, or a sample of another type.
func (e *Endpoint) TestEvent(d Delivery) (*feed.Event, error) {
	if sample, ok := feed.Sample(d.Type, d.EventID, e.Environment, d.CreatedAt); ok {
		sample.AccountID = e.AccountID
		return &sample, nil
	}
	var about any = struct {
		ID  uuid.UUID `json:"id"`
		URL string    `json:"url"`
	}{e.ID, e.URL}
	if d.Type == feed.TypeWebhookDisabled {
		about = DisabledData{ID: e.ID, URL: e.URL, Reason: DisabledGone}
	}
	data, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	return &feed.Event{ID: d.EventID, Type: d.Type, AccountID: e.AccountID, Environment: e.Environment, At: d.CreatedAt, Data: data}, nil
}

// DeliveryQuery is a query for deliveries of an endpoint, newest first.
type DeliveryQuery struct {
	// Status is empty for all.
	Status Status
	// After is the end of the previous page, nil for the first page.
	After *DeliveryCursor
	Limit int
}

// DeliveryCursor is the position of a delivery in its endpoint's list.
type DeliveryCursor struct {
	Position int64
	EventID  feed.ID
}

// ErrDeliveryCursor is returned for text that is not a cursor.
var ErrDeliveryCursor = errors.New("is not a cursor of this list; take it from next")

// String returns the URL-safe form.
func (c DeliveryCursor) String() string {
	id := uuid.UUID(c.EventID)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(id[:], uint64(c.Position))) //nolint:gosec // positions are not negative
}

// ParseDeliveryCursor parses the result of String.
func ParseDeliveryCursor(text string) (*DeliveryCursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 16+8 {
		return nil, ErrDeliveryCursor
	}
	position := int64(binary.BigEndian.Uint64(raw[16:])) //nolint:gosec // checked on the next line
	if position < 0 {
		return nil, ErrDeliveryCursor
	}
	return &DeliveryCursor{Position: position, EventID: feed.ID(raw[:16])}, nil
}

// The rate of an endpoint's deliveries: deliveryBurst at once, and one each deliveryInterval on average, 100 a second. It is above
// what the requests of one account cause (1,000 intents a minute of four events each), so that it only spreads replays.
const (
	deliveryInterval = 10 * time.Millisecond
	deliveryBurst    = 1000
)

// An account replays ReplayBurst times, once to each of its endpoints, and then once each ReplayInterval.
const (
	ReplayBurst    = MaxEndpoints
	ReplayInterval = 30 * time.Minute
)

// An account creates CreationBurst endpoints, and then one each CreationInterval: what it deletes costs something for a while.
const (
	CreationBurst    = 3 * MaxEndpoints
	CreationInterval = time.Minute
)

// ErrTooManyCreations means that an account may create no endpoint for now.
var ErrTooManyCreations = errors.New("the account has created as many webhooks as it may for now")

// ErrTooManyReplays means that an account has no replay left.
var ErrTooManyReplays = errors.New("the account has replayed as often as it may for now")

// Pace spreads the first attempts of an endpoint's deliveries (the generic cell rate algorithm). The zero value is an endpoint that
// has had none.
type Pace struct {
	// Until is when the deliveries so far would end at the average rate.
	Until time.Time
}

// Next is when the next delivery is due, now or later.
func (p *Pace) Next(now time.Time) time.Time {
	if p.Until.Before(now) {
		p.Until = now
	}
	due := p.Until.Add(-deliveryBurst * deliveryInterval)
	p.Until = p.Until.Add(deliveryInterval)
	if due.Before(now) {
		return now
	}
	return due
}
