package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
)

type pastAttemptRow struct {
	bun.BaseModel `bun:"table:delivery_attempts,alias:delivery_attempts"`

	EndedAt        time.Time `bun:"ended_at"`
	DurationMS     int64     `bun:"duration_ms"`
	ResponseStatus int       `bun:"response_status,nullzero"`
	Error          string    `bun:"error,nullzero"`
	ResponseBody   *string   `bun:"response_body"`
}

// Delivery reads a delivery of one of an owner's endpoints, and the endpoint. It returns ErrNotFound or ErrDeliveryNotFound.
func (s *Store) Delivery(ctx context.Context, owner feed.Owner, webhookID uuid.UUID, eventID feed.ID) (*DeliveryDetails, *Endpoint, error) {
	e, err := s.Webhook(ctx, owner, webhookID)
	if err != nil {
		return nil, nil, err
	}
	var row deliveryRow
	err = s.db.NewSelect().Model(&row).Where("webhook_id = ? AND event_id = ?", webhookID, uuid.UUID(eventID)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, ErrDeliveryNotFound
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read delivery %s of webhook %s: %w", eventID, webhookID, err)
	}
	d := &DeliveryDetails{Delivery: row.delivery()}
	if d.Past, err = s.pastAttempts(ctx, webhookID, eventID); err != nil {
		return nil, nil, err
	}
	if d.Test {
		d.Event, err = e.TestEvent(d.Delivery)
		return d, e, err
	}
	events, err := s.feed.EventsAt(ctx, []int64{d.Position})
	if event, kept := events[d.Position]; kept {
		d.Event = &event
	}
	return d, e, err
}

// MaxIntentDeliveries is the number of an intent's deliveries that are read at most, the newest.
const MaxIntentDeliveries = 50

// DeliveriesOfIntent reads the newest deliveries of an intent's events to its owner's endpoints, and the endpoints' URLs.
func (s *Store) DeliveriesOfIntent(ctx context.Context, owner feed.Owner, transferID uuid.UUID) ([]Delivery, map[uuid.UUID]string, error) {
	endpoints, err := s.Webhooks(ctx, owner)
	if err != nil || len(endpoints) == 0 {
		return nil, nil, err
	}
	events, err := s.feed.EventIDs(ctx, owner.AccountID, transferID, MaxIntentDeliveries)
	if err != nil || len(events) == 0 {
		return nil, nil, err
	}
	urls, ids := map[uuid.UUID]string{}, make([]uuid.UUID, len(endpoints))
	for n, e := range endpoints {
		urls[e.ID], ids[n] = e.URL, e.ID
	}
	var rows []deliveryRow
	err = s.db.NewSelect().Model(&rows).Where("webhook_id IN (?) AND event_id IN (?)", bun.List(ids), bun.List(events)).
		Order("position DESC", "event_id DESC", "webhook_id").Limit(MaxIntentDeliveries).Scan(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the deliveries of transfer %s: %w", transferID, err)
	}
	deliveries := make([]Delivery, len(rows))
	for n := range rows {
		deliveries[n] = rows[n].delivery()
	}
	return deliveries, urls, nil
}

// pastAttempts reads the newest attempts of a delivery.
func (s *Store) pastAttempts(ctx context.Context, webhookID uuid.UUID, eventID feed.ID) (attempts []PastAttempt, err error) {
	var rows []pastAttemptRow
	err = s.db.NewSelect().Model(&rows).Where("webhook_id = ? AND event_id = ?", webhookID, uuid.UUID(eventID)).
		Order("ended_at DESC").Limit(MaxPastAttempts).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the attempts of delivery %s of webhook %s: %w", eventID, webhookID, err)
	}
	for _, row := range rows {
		attempts = append(attempts, PastAttempt{
			EndedAt: row.EndedAt.UTC(), Duration: time.Duration(row.DurationMS) * time.Millisecond, ResponseStatus: row.ResponseStatus,
			ResponseBody: row.ResponseBody, Error: row.Error,
		})
	}
	return attempts, nil
}
