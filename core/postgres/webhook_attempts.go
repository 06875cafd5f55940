package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/event"
	"intents.internal/core/webhook"
)

// DueDeliveries are deliveries of a leased endpoint whose attempt is due.
type DueDeliveries struct {
	Endpoint   *webhook.Endpoint
	Deliveries []DueDelivery
}

// DueDelivery is a delivery with its event, which is nil if it is no longer kept.
type DueDelivery struct {
	webhook.Delivery
	Event *event.Event
}

// DueDeliveries reads at most limit due deliveries of each of these endpoints, the longest due first. It skips endpoints whose
// lease the holder does not have, that are disabled or deleted, or whose account gets nothing.
func (s *Store) DueDeliveries(ctx context.Context, lease WebhookLease, ids []uuid.UUID, limit int) (map[uuid.UUID]DueDeliveries, error) {
	var endpoints []webhookRow
	err := s.db.NewSelect().Model(&endpoints).Where("id IN (?)", bun.List(ids)).Where("lease_holder = ?", lease.Holder).
		Where("lease_until > clock_timestamp()").Where(ofActiveAccount).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %d leased webhooks: %w", len(ids), err)
	}
	if len(endpoints) == 0 {
		return nil, nil
	}
	due := make(map[uuid.UUID]DueDeliveries, len(endpoints))
	leased := make([]uuid.UUID, len(endpoints))
	for n := range endpoints {
		leased[n] = endpoints[n].ID
		due[leased[n]] = DueDeliveries{Endpoint: endpoints[n].endpoint()}
	}
	var rows []deliveryRow
	err = s.db.NewRaw(`SELECT due.* FROM webhooks CROSS JOIN LATERAL (
			SELECT * FROM deliveries WHERE webhook_id = webhooks.id AND status = 'pending' AND next_attempt_at <= clock_timestamp()
			ORDER BY next_attempt_at LIMIT ?1) AS due
		WHERE webhooks.id IN (?0)`, bun.List(leased), limit).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the due deliveries of %d webhooks: %w", len(leased), err)
	}
	positions := make([]int64, 0, len(rows))
	for _, row := range rows {
		if row.Type != event.TypeWebhookTest { // a test event is not in the feed
			positions = append(positions, row.Position)
		}
	}
	events, err := s.EventsAt(ctx, positions)
	if err != nil {
		return nil, err
	}
	for n := range rows {
		of := due[rows[n].WebhookID]
		one := DueDelivery{Delivery: rows[n].delivery()}
		if one.Type == event.TypeWebhookTest {
			one.Event, err = of.Endpoint.TestEvent(one.Delivery)
		} else if e, kept := events[one.Position]; kept {
			one.Event = &e
		}
		if err != nil {
			return nil, err
		}
		of.Deliveries = append(of.Deliveries, one)
		due[rows[n].WebhookID] = of
	}
	return due, nil
}

// AttemptRecord is the result of an attempt, with the state of its delivery when the attempt started.
type AttemptRecord struct {
	Endpoint *webhook.Endpoint
	Delivery webhook.Delivery
	Attempt  webhook.Attempt
}

// RecordAttempts writes the results of attempts and their effects on the endpoints, and returns why it disabled endpoints. It
// ignores a result if the delivery has changed since, because of a retry or an attempt of another process.
func (s *Store) RecordAttempts(ctx context.Context, records []AttemptRecord) (disabled []webhook.Reason, err error) {
	applied, err := s.applyAttempts(ctx, records)
	if err != nil {
		return nil, err
	}
	byEndpoint := map[uuid.UUID][]AttemptRecord{}
	for _, r := range applied {
		byEndpoint[r.Endpoint.ID] = append(byEndpoint[r.Endpoint.ID], r)
	}
	for id, of := range byEndpoint {
		reason, err := s.recordHealth(ctx, of)
		if err != nil {
			return disabled, fmt.Errorf("record the health of webhook %s: %w", id, err)
		}
		if reason != "" {
			disabled = append(disabled, reason)
		}
	}
	return disabled, nil
}

// outcomeRow is the new state of a delivery, applied if it is still due at DueAt after this number of attempts.
type outcomeRow struct {
	Ordinal        int            `bun:"ordinal,type:integer"`
	WebhookID      uuid.UUID      `bun:"webhook_id,type:uuid"`
	EventID        uuid.UUID      `bun:"event_id,type:uuid"`
	Attempts       int            `bun:"attempts,type:integer"`
	DueAt          *time.Time     `bun:"due_at,type:timestamptz"`
	Status         webhook.Status `bun:"status,type:text"`
	NextAttemptAt  *time.Time     `bun:"next_attempt_at,type:timestamptz"`
	ResponseStatus *int           `bun:"response_status,type:integer"`
	Error          *string        `bun:"error,type:text"`
	EndedAt        time.Time      `bun:"ended_at,type:timestamptz"`
}

// applyAttempts writes the results in the order of the primary key, which prevents deadlocks, and returns those that it wrote.
func (s *Store) applyAttempts(ctx context.Context, records []AttemptRecord) (applied []AttemptRecord, err error) {
	rows := make([]outcomeRow, len(records))
	for n, r := range records {
		status, next := r.Attempt.After(r.Delivery.Attempts)
		rows[n] = outcomeRow{
			Ordinal: n, WebhookID: r.Delivery.WebhookID, EventID: uuid.UUID(r.Delivery.EventID), Attempts: r.Delivery.Attempts,
			DueAt: r.Delivery.NextAttemptAt, Status: status, EndedAt: r.Attempt.EndedAt,
		}
		if status == webhook.Pending {
			rows[n].NextAttemptAt = &next
		}
		if r.Attempt.ResponseStatus != 0 {
			rows[n].ResponseStatus = &r.Attempt.ResponseStatus
		}
		if text := r.Attempt.Outcome.Text(); text != "" {
			rows[n].Error = &text
		}
	}
	slices.SortFunc(rows, func(a, b outcomeRow) int {
		return cmp.Or(cmp.Compare(a.WebhookID.String(), b.WebhookID.String()), cmp.Compare(a.EventID.String(), b.EventID.String()))
	})
	var ordinals []int
	err = s.db.NewRaw(`WITH outcomes (ordinal, webhook_id, event_id, attempts, due_at, status, next_attempt_at, response_status, error, ended_at) AS (?0), current AS (
			SELECT outcomes.* FROM outcomes JOIN deliveries USING (webhook_id, event_id)
			WHERE deliveries.status = 'pending' AND deliveries.attempts = outcomes.attempts AND deliveries.next_attempt_at = outcomes.due_at
			ORDER BY webhook_id, event_id FOR NO KEY UPDATE OF deliveries
		) UPDATE deliveries SET status = current.status, attempts = deliveries.attempts + 1, next_attempt_at = current.next_attempt_at,
			response_status = current.response_status, error = current.error, updated_at = current.ended_at
		FROM current WHERE deliveries.webhook_id = current.webhook_id AND deliveries.event_id = current.event_id RETURNING current.ordinal`,
		s.db.NewValues(&rows)).Scan(ctx, &ordinals)
	if err != nil {
		return nil, fmt.Errorf("record %d attempts: %w", len(records), err)
	}
	for _, n := range ordinals {
		applied = append(applied, records[n])
	}
	return applied, nil
}

// recordHealth writes the health of endpoints after attempts: since when they fail, and whether they are disabled. It ignores
// attempts at an earlier URL of the endpoint, and does not write unchanged endpoints.
func (s *Store) recordHealth(ctx context.Context, records []AttemptRecord) (disabled webhook.Reason, err error) {
	endpoint := records[0].Endpoint
	succeeded := slices.ContainsFunc(records, func(r AttemptRecord) bool { return r.Attempt.Outcome == webhook.Succeeded })
	failures := slices.DeleteFunc(slices.Clone(records), func(r AttemptRecord) bool {
		return r.Attempt.Outcome == webhook.Succeeded || r.Attempt.Outcome == webhook.EventGone
	})
	gone := slices.ContainsFunc(failures, func(r AttemptRecord) bool { return r.Attempt.Gone() })
	switch {
	case succeeded && !gone:
		if endpoint.FailingSince == nil {
			return "", nil
		}
		_, err := s.db.NewRaw("UPDATE webhooks SET failing_since = NULL WHERE id = ? AND url = ?", endpoint.ID, endpoint.URL).Exec(ctx)
		return "", err
	case len(failures) == 0:
		return "", nil
	}
	last := slices.MaxFunc(failures, func(a, b AttemptRecord) int {
		return cmp.Or(compareBool(a.Attempt.Gone(), b.Attempt.Gone()), a.Attempt.EndedAt.Compare(b.Attempt.EndedAt))
	}).Attempt
	if endpoint.FailingSince != nil && webhook.DisabledBy(last, *endpoint.FailingSince) == "" {
		return "", nil
	}
	err = s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		disabled, err = tx.recordFailure(ctx, endpoint, last)
		return err
	})
	return disabled, err
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// recordFailure starts the endpoint's failure period, or disables the endpoint at its end and writes the event.
func (tx Tx) recordFailure(ctx context.Context, seen *webhook.Endpoint, last webhook.Attempt) (webhook.Reason, error) {
	var rows []webhookRow
	err := tx.db.NewSelect().Model(&rows).Where("id = ? AND url = ? AND enabled", seen.ID, seen.URL).For("NO KEY UPDATE").Scan(ctx)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	e := rows[0].endpoint()
	if e.FailingSince == nil {
		e.FailingSince = &last.EndedAt
	}
	reason := webhook.DisabledBy(last, *e.FailingSince)
	if reason == "" {
		return "", tx.updateWebhook(ctx, e)
	}
	e.Enabled, e.DisabledReason, e.FailingSince, e.UpdatedAt = false, reason, nil, last.EndedAt
	if err := tx.updateWebhook(ctx, e); err != nil {
		return "", err
	}
	_, err = tx.AppendEvent(ctx, e.Owner(), event.TypeWebhookDisabled, e.ID, last.EndedAt, webhook.DisabledData{ID: e.ID, URL: e.URL, Reason: reason})
	return reason, err
}
