package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
)

type deliveryRow struct {
	bun.BaseModel `bun:"table:deliveries,alias:deliveries"`

	WebhookID      uuid.UUID  `bun:"webhook_id,pk"`
	EventID        uuid.UUID  `bun:"event_id,pk"`
	Position       int64      `bun:"position"`
	Type           feed.Type  `bun:"type"`
	Test           bool       `bun:"test"`
	Status         Status     `bun:"status"`
	Attempts       int        `bun:"attempts"`
	NextAttemptAt  *time.Time `bun:"next_attempt_at"`
	ResponseStatus int        `bun:"response_status,nullzero"`
	Error          string     `bun:"error,nullzero"`
	CreatedAt      time.Time  `bun:"created_at"`
	UpdatedAt      time.Time  `bun:"updated_at"`
}

func (r *deliveryRow) delivery() Delivery {
	status := r.Status
	if status == Pending && r.Attempts > 0 {
		status = Retrying
	}
	return Delivery{
		WebhookID: r.WebhookID, EventID: feed.ID(r.EventID), Position: r.Position, Type: r.Type, Status: status, Attempts: r.Attempts,
		Test:          r.isTest(),
		NextAttemptAt: postgres.UTC(r.NextAttemptAt), ResponseStatus: r.ResponseStatus, Error: r.Error,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// isTest reports whether the event is not in the feed. The version before has tests of one type only, and marks none.
func (r *deliveryRow) isTest() bool { return r.Test || r.Type == feed.TypeWebhookTest }

// newDeliveryRow is a delivery that is due at once.
func newDeliveryRow(webhookID uuid.UUID, eventID feed.ID, position int64, kind feed.Type, now time.Time) deliveryRow {
	return deliveryRow{
		WebhookID: webhookID, EventID: uuid.UUID(eventID), Position: position, Type: kind, Status: Pending, NextAttemptAt: &now,
		CreatedAt: now, UpdatedAt: now,
	}
}

// Deliveries reads a page of those of one of an owner's endpoints, newest first, and where the next page begins, nil at the end of the list. A
// page of pending, retrying or delivered ones examines at most postgres.LongScan deliveries: it may be empty and have a next one. It returns
// ErrNotFound for an endpoint that the owner does not have.
func (s *Store) Deliveries(
	ctx context.Context, owner feed.Owner, webhookID uuid.UUID, q DeliveryQuery,
) (page []Delivery, next *DeliveryCursor, err error) {
	if _, err := s.Webhook(ctx, owner, webhookID); err != nil {
		return nil, nil, err
	}
	limit := q.Limit
	q.Limit++ // one more row shows whether there is a next page
	// The failed ones have an index of their own.
	filtered := q.Status != "" && q.Status != Failed
	err = s.db.LongLists.ReadPage(ctx, owner.AccountID, q.Limit, filtered, func(ctx context.Context, scan int) (incomplete bool, err error) {
		page, next, err = s.scanDeliveries(ctx, webhookID, q, scan)
		return next != nil && len(page) < q.Limit, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the deliveries of webhook %s: %w", webhookID, err)
	}
	if len(page) > limit {
		last := page[limit-1]
		page, next = page[:limit], &DeliveryCursor{Position: last.Position, EventID: last.EventID}
	}
	return page, next, nil
}

// scanDeliveries reads up to q.Limit deliveries among the next scan rows of an index, and where the list continues.
func (s *Store) scanDeliveries(
	ctx context.Context, webhookID uuid.UUID, q DeliveryQuery, scan int,
) (page []Delivery, next *DeliveryCursor, err error) {
	index := s.db.NewSelect().Model((*deliveryRow)(nil)).Where("webhook_id = ?", webhookID)
	condition := "true"
	switch q.Status {
	case Pending:
		condition = "status = 'pending' AND attempts = 0"
	case Retrying:
		condition = "status = 'pending' AND attempts > 0"
	case Delivered:
		condition = "status = 'delivered'"
	case Failed:
		index.Where("status = 'failed'")
	}
	if q.After != nil {
		index.Where("(position, event_id) < (?, ?)", q.After.Position, uuid.UUID(q.After.EventID))
	}
	list := postgres.ListScan{
		Index: postgres.Matches(index.Column("webhook_id", "event_id", "position", "type", "test", "status", "attempts", "next_attempt_at", "response_status",
			"error", "created_at", "updated_at"), condition),
		Order: "position DESC, event_id DESC", Rows: q.Limit, Scan: scan,
	}
	found, last, err := postgres.Scan[deliveryRow](ctx, s.db, list)
	if err != nil {
		return nil, nil, err
	}
	for n := range found {
		page = append(page, found[n].delivery())
	}
	if last != nil {
		next = &DeliveryCursor{Position: last.Position, EventID: feed.ID(last.EventID)}
	}
	return page, next, nil
}

// untilQueued is the lock of an endpoint for which a transaction queues something: what ends the endpoint waits, and ends that too.
const untilQueued = "KEY SHARE"

// TestWebhook queues a test of one of TestTypes for one of an owner's endpoints, regardless of its filter. It returns
// ErrNotFound or ErrDisabled.
func (s *Store) TestWebhook(ctx context.Context, grant access.Grant, owner feed.Owner, webhookID uuid.UUID, kind feed.Type) (feed.ID, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return feed.ID{}, err
	}
	err = s.InTx(ctx, grant.Turn(owner.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, owner.AccountID); err != nil {
			return err
		}
		if _, err := enabledWebhook(ctx, tx.db.NewSelect().For(untilQueued), owner, webhookID); err != nil {
			return err
		}
		now := s.Now()
		row := newDeliveryRow(webhookID, feed.ID(id), now.UnixMicro(), kind, now)
		row.Test = true
		if _, err := tx.db.NewInsert().Model(&row).Exec(ctx); err != nil {
			return fmt.Errorf("insert a test delivery of webhook %s: %w", webhookID, err)
		}
		return nil
	})
	return feed.ID(id), err
}

// RetryDelivery redelivers an event at once to one of an owner's endpoints, whatever its state, and restarts the retry schedule.
// An attempt in flight is no longer recorded. It returns ErrNotFound, ErrDisabled or ErrDeliveryNotFound.
func (s *Store) RetryDelivery(ctx context.Context, grant access.Grant, owner feed.Owner, webhookID uuid.UUID, eventID feed.ID) error {
	return s.InTx(ctx, grant.Turn(owner.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, owner.AccountID); err != nil {
			return err
		}
		if _, err := enabledWebhook(ctx, tx.db.NewSelect().For(untilQueued), owner, webhookID); err != nil {
			return err
		}
		now := s.Now()
		retried, err := postgres.RowsChanged(tx.db.NewRaw(`UPDATE deliveries SET status = 'pending', attempts = 0, next_attempt_at = ?0, response_status = NULL,
			error = NULL, updated_at = ?0 WHERE webhook_id = ?1 AND event_id = ?2`, now, webhookID, uuid.UUID(eventID)).Exec(ctx))
		if err != nil {
			return fmt.Errorf("retry event %s of webhook %s: %w", eventID, webhookID, err)
		}
		if retried == 0 {
			return ErrDeliveryNotFound
		}
		return nil
	})
}
