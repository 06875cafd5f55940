package events

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/store/postgres"
)

type deliveryRow struct {
	bun.BaseModel `bun:"table:deliveries,alias:deliveries"`

	WebhookID      uuid.UUID      `bun:"webhook_id,pk"`
	EventID        uuid.UUID      `bun:"event_id,pk"`
	Position       int64          `bun:"position"`
	Type           event.Type     `bun:"type"`
	Status         webhook.Status `bun:"status"`
	Attempts       int            `bun:"attempts"`
	NextAttemptAt  *time.Time     `bun:"next_attempt_at"`
	ResponseStatus int            `bun:"response_status,nullzero"`
	Error          string         `bun:"error,nullzero"`
	CreatedAt      time.Time      `bun:"created_at"`
	UpdatedAt      time.Time      `bun:"updated_at"`
}

func (r *deliveryRow) delivery() webhook.Delivery {
	return webhook.Delivery{
		WebhookID: r.WebhookID, EventID: event.ID(r.EventID), Position: r.Position, Type: r.Type, Status: r.Status, Attempts: r.Attempts,
		NextAttemptAt: postgres.UTC(r.NextAttemptAt), ResponseStatus: r.ResponseStatus, Error: r.Error,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// newDeliveryRow is a delivery that is due at once.
func newDeliveryRow(webhookID uuid.UUID, eventID event.ID, position int64, kind event.Type, now time.Time) deliveryRow {
	return deliveryRow{
		WebhookID: webhookID, EventID: uuid.UUID(eventID), Position: position, Type: kind, Status: webhook.Pending, NextAttemptAt: &now,
		CreatedAt: now, UpdatedAt: now,
	}
}

// Deliveries lists those of one of an owner's endpoints, newest first. It returns webhook.ErrNotFound for an endpoint that the owner does
// not have.
func (s *Store) Deliveries(ctx context.Context, owner event.Owner, webhookID uuid.UUID, q webhook.DeliveryQuery) ([]webhook.Delivery, error) {
	if _, err := s.Webhook(ctx, owner, webhookID); err != nil {
		return nil, err
	}
	release, err := s.db.LongLists.Acquire(ctx, owner.AccountID, q.Limit)
	if err != nil {
		return nil, err
	}
	defer release()
	var rows []deliveryRow
	query := s.db.NewSelect().Model(&rows).Where("webhook_id = ?", webhookID).Order("position DESC", "event_id DESC").Limit(int64(q.Limit))
	if q.Status != "" {
		query.Where("status = ?", q.Status)
	}
	if q.After != nil {
		query.Where("(position, event_id) < (?, ?)", q.After.Position, uuid.UUID(q.After.EventID))
	}
	if err := query.Scan(ctx); err != nil {
		return nil, fmt.Errorf("list the deliveries of webhook %s: %w", webhookID, err)
	}
	deliveries := make([]webhook.Delivery, len(rows))
	for n := range rows {
		deliveries[n] = rows[n].delivery()
	}
	return deliveries, nil
}

// TestWebhook queues a webhook.test event for one of an owner's endpoints, regardless of its filter. It returns
// webhook.ErrNotFound or webhook.ErrDisabled.
func (s *Store) TestWebhook(ctx context.Context, owner event.Owner, webhookID uuid.UUID) (event.ID, error) {
	if _, err := enabledWebhook(ctx, s.db.NewSelect(), owner, webhookID); err != nil {
		return event.ID{}, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return event.ID{}, err
	}
	now := s.Now()
	row := newDeliveryRow(webhookID, event.ID(id), now.UnixMicro(), event.TypeWebhookTest, now)
	if _, err := s.db.NewInsert().Model(&row).Exec(ctx); err != nil {
		return event.ID{}, fmt.Errorf("insert a test delivery of webhook %s: %w", webhookID, err)
	}
	return event.ID(id), nil
}

// RetryDelivery redelivers an event at once to one of an owner's endpoints, whatever its state, and restarts the retry schedule.
// An attempt in flight is no longer recorded. It returns webhook.ErrNotFound, webhook.ErrDisabled or webhook.ErrDeliveryNotFound.
func (s *Store) RetryDelivery(ctx context.Context, owner event.Owner, webhookID uuid.UUID, eventID event.ID) error {
	if _, err := enabledWebhook(ctx, s.db.NewSelect(), owner, webhookID); err != nil {
		return err
	}
	now := s.Now()
	retried, err := postgres.RowsChanged(s.db.NewRaw(`UPDATE deliveries SET status = 'pending', attempts = 0, next_attempt_at = ?0, response_status = NULL,
		error = NULL, updated_at = ?0 WHERE webhook_id = ?1 AND event_id = ?2`, now, webhookID, uuid.UUID(eventID)).Exec(ctx))
	if err != nil {
		return fmt.Errorf("retry event %s of webhook %s: %w", eventID, webhookID, err)
	}
	if retried == 0 {
		return webhook.ErrDeliveryNotFound
	}
	return nil
}
