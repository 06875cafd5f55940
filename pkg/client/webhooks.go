package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Webhooks manages the URLs to which events are posted.
type Webhooks struct{ c *Client }

// Webhook is a URL to which events are posted.
type Webhook struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Types are the events that it gets, nil for all: names, a subject and ".*", or "*".
	Types          []string        `json:"types"`
	Description    *string         `json:"description"`
	Environment    Environment     `json:"environment"`
	Enabled        bool            `json:"enabled"`
	DisabledReason *DisabledReason `json:"disabledReason"`
	CreatedAt      time.Time       `json:"createdAt"`
	UpdatedAt      time.Time       `json:"updatedAt"`
}

// DisabledReason is why a webhook is disabled.
type DisabledReason string

// Reasons: its owner did it, it answered 410, or it failed for days.
const (
	DisabledByOwner DisabledReason = "owner"
	DisabledGone    DisabledReason = "gone"
	DisabledFailing DisabledReason = "failing"
)

// CreateWebhook asks for a webhook.
type CreateWebhook struct {
	URL string `json:"url"`
	// Types are the events that it gets, none for all.
	Types       []string `json:"types,omitempty"`
	Description string   `json:"description,omitempty"`
	// IdempotencyKey is as in CreateTransfer.
	IdempotencyKey string `json:"-"`
}

// CreatedWebhook is a new webhook with its secret, which is shown once.
type CreatedWebhook struct {
	Webhook
	Secret string `json:"secret"`
}

// UpdateWebhook changes a webhook. A zero member stays as it is.
type UpdateWebhook struct {
	URL         string           `json:"url,omitempty"`
	Types       Change[[]string] `json:"types,omitzero"`
	Description Change[string]   `json:"description,omitzero"`
	Enabled     *bool            `json:"enabled,omitempty"`
}

// Change is a new value of a member that may be null. The zero value changes nothing.
type Change[T any] struct{ value **T }

// SetTo changes a member to a value.
func SetTo[T any](value T) Change[T] { return Change[T]{new(&value)} }

// SetToNull removes a member's value.
func SetToNull[T any]() Change[T] { return Change[T]{new(*T)} }

// MarshalJSON writes the new value.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

// Create makes a webhook. It is repeated with the same Idempotency-Key.
func (s *Webhooks) Create(ctx context.Context, create CreateWebhook) (*CreatedWebhook, error) {
	return call[CreatedWebhook](ctx, s.c, request{
		method: http.MethodPost, path: "/v2/webhooks", body: create, idempotencyKey: cmp.Or(create.IdempotencyKey, rand.Text()),
	})
}

// List returns the webhooks of the key's environment, newest first.
func (s *Webhooks) List(ctx context.Context) (webhooks []Webhook, err error) {
	_, err = s.c.do(ctx, request{method: http.MethodGet, path: "/v2/webhooks"}, &webhooks)
	return webhooks, err
}

// Get reads a webhook.
func (s *Webhooks) Get(ctx context.Context, id string) (*Webhook, error) {
	return call[Webhook](ctx, s.c, request{method: http.MethodGet, path: webhookPath(id, "")})
}

// Update changes a webhook. It is tried once.
func (s *Webhooks) Update(ctx context.Context, id string, update UpdateWebhook) (*Webhook, error) {
	return call[Webhook](ctx, s.c, request{method: http.MethodPatch, path: webhookPath(id, ""), body: update})
}

// Delete removes a webhook. CodeNotFound means that it is gone already.
func (s *Webhooks) Delete(ctx context.Context, id string) error {
	_, err := s.c.do(ctx, request{method: http.MethodDelete, path: webhookPath(id, "")}, nil)
	return err
}

// RotateWebhookSecret asks for a new secret. Both sign for the grace period in seconds, by default a day.
type RotateWebhookSecret struct {
	GracePeriod *int `json:"gracePeriod,omitempty"`
}

// WebhookSecret is a new secret, which is shown once.
type WebhookSecret struct {
	Secret string `json:"secret"`
}

// RotateSecret makes a new secret. It is tried once.
func (s *Webhooks) RotateSecret(ctx context.Context, id string, rotate RotateWebhookSecret) (*WebhookSecret, error) {
	return call[WebhookSecret](ctx, s.c, request{method: http.MethodPost, path: webhookPath(id, "/rotate-secret"), body: rotate})
}

// TestWebhook says which event to send, by default WebhookTest. Of any other type it is a sample, which is simulated.
type TestWebhook struct {
	Type EventType `json:"type,omitempty"`
}

// TestedWebhook has the id of the test event.
type TestedWebhook struct {
	EventID string `json:"eventId"`
}

// Test posts a test event to a webhook, whatever its types are. It is tried once.
func (s *Webhooks) Test(ctx context.Context, id string, test TestWebhook) (*TestedWebhook, error) {
	return call[TestedWebhook](ctx, s.c, request{method: http.MethodPost, path: webhookPath(id, "/test"), body: test})
}

// Delivery is what became of an event at a webhook.
type Delivery struct {
	EventID        string         `json:"eventId"`
	Type           EventType      `json:"type"`
	Status         DeliveryStatus `json:"status"`
	Attempts       int            `json:"attempts"`
	NextAttemptAt  *time.Time     `json:"nextAttemptAt"`
	ResponseStatus *int           `json:"responseStatus"`
	Error          *string        `json:"error"`
	UpdatedAt      time.Time      `json:"updatedAt"`
}

// DeliveryStatus is where a delivery stands.
type DeliveryStatus string

// Statuses of deliveries.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryRetrying  DeliveryStatus = "retrying"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// DeliveryQuery chooses deliveries. A zero field does not restrict.
type DeliveryQuery struct {
	Status DeliveryStatus
	// After is Next of the page before.
	After string
	Limit int
}

// DeliveryPage is a page of deliveries. A page of one status may be empty and have a next one.
type DeliveryPage struct {
	Deliveries []Delivery `json:"deliveries"`
	// Next is the cursor of the next page, nil on the last.
	Next *string `json:"next"`
}

// Deliveries lists what became of each event, newest first.
func (s *Webhooks) Deliveries(ctx context.Context, id string, query DeliveryQuery) (*DeliveryPage, error) {
	values := url.Values{}
	setNonEmpty(values, "status", string(query.Status))
	setNonEmpty(values, "after", query.After)
	if query.Limit != 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	return call[DeliveryPage](ctx, s.c, request{method: http.MethodGet, path: webhookPath(id, "/deliveries"), query: values})
}

// DeliveryDetails is a delivery with what was sent and what came back.
type DeliveryDetails struct {
	Delivery

	// TransferID is nil for an event that is not an intent's, and once the event is not kept.
	TransferID *string `json:"transferId"`
	// RequestBody is nil once the event is not kept.
	RequestBody *string `json:"requestBody"`
	// PastAttempts are the newest 20 of the last 7 days, newest first, those before a retry or a replay too.
	PastAttempts []PastAttempt `json:"pastAttempts"`
}

// PastAttempt is an attempt to deliver an event.
type PastAttempt struct {
	EndedAt    time.Time `json:"endedAt"`
	DurationMS int       `json:"durationMs"`
	// ResponseStatus and ResponseBody are nil without an answer.
	ResponseStatus *int `json:"responseStatus"`
	// ResponseBody is the first 4 KiB of the answer as text, or the first 512 bytes of one with 2xx. It is the receiver's: do not trust it.
	ResponseBody *string `json:"responseBody"`
	// Error is nil for a success.
	Error *string `json:"error"`
}

// Delivery says what became of one event, with the body that is sent and what the receiver answered.
func (s *Webhooks) Delivery(ctx context.Context, id, eventID string) (*DeliveryDetails, error) {
	return call[DeliveryDetails](ctx, s.c, request{method: http.MethodGet, path: webhookPath(id, "/deliveries/"+url.PathEscape(eventID))})
}

// Retry delivers an event again at once. It is tried once.
func (s *Webhooks) Retry(ctx context.Context, id, eventID string) error {
	_, err := s.c.do(ctx, request{method: http.MethodPost, path: webhookPath(id, "/deliveries/"+url.PathEscape(eventID)+"/retry")}, nil)
	return err
}

// ReplayWebhook is the cursor of the feed behind which events are delivered again.
type ReplayWebhook struct {
	After string `json:"after"`
}

// Replay delivers every event behind the cursor again, with the same ids. It is tried once.
func (s *Webhooks) Replay(ctx context.Context, id string, replay ReplayWebhook) error {
	_, err := s.c.do(ctx, request{method: http.MethodPost, path: webhookPath(id, "/replay"), body: replay}, nil)
	return err
}

func webhookPath(id, rest string) string { return "/v2/webhooks/" + url.PathEscape(id) + rest }
