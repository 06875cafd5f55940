package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/postgres"
)

// Claim requests due deliveries of a leased endpoint.
type Claim struct {
	WebhookID uuid.UUID
	// Limit is how many can be sent now.
	Limit int
	// InFlight are the events whose attempts are not recorded yet.
	InFlight []feed.ID
}

// DueDeliveries are deliveries of a leased endpoint whose attempt is due.
type DueDeliveries struct {
	Endpoint *Endpoint
	// ReadAt is when the endpoint was read, or earlier, by the process's clock.
	ReadAt     time.Time
	Deliveries []DueDelivery
}

// DueDelivery is a delivery with its event, which is nil if it is no longer kept.
type DueDelivery struct {
	Delivery
	Event *feed.Event
}

// DueDeliveries reads due deliveries of endpoints, at most the limit of each claim, the longest due first, and only of these the
// events, once they are as durable as a commit. It skips endpoints whose lease the holder does not have, that are disabled or deleted, or whose account gets nothing. It
// reads the endpoints last, so that their URLs and secrets are as new as possible.
func (s *Store) DueDeliveries(ctx context.Context, lease Lease, claims []Claim) (map[uuid.UUID]DueDeliveries, error) {
	rows, err := s.claimedRows(ctx, claims)
	if err != nil {
		return nil, err
	}
	positions := make([]int64, 0, len(rows))
	for _, row := range rows {
		if !row.isTest() {
			positions = append(positions, row.Position)
		}
	}
	if len(positions) > 0 {
		if err := s.feed.Confirm(ctx, slices.Max(positions)); err != nil {
			return nil, err
		}
	}
	events, err := s.feed.EventsAt(ctx, positions)
	if err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(claims))
	for n, c := range claims {
		ids[n] = c.WebhookID
	}
	readAt := time.Now()
	var endpoints []webhookRow
	err = s.db.NewSelect().Model(&endpoints).Where("id IN (?)", bun.List(ids)).Where("lease_holder = ?", lease.Holder).
		Where("lease_until > clock_timestamp()").Where(ofActiveAccount).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %d leased webhooks: %w", len(ids), err)
	}
	due := make(map[uuid.UUID]DueDeliveries, len(endpoints))
	for n := range endpoints {
		due[endpoints[n].ID] = DueDeliveries{Endpoint: endpoints[n].endpoint(), ReadAt: readAt}
	}
	for n := range rows {
		of := due[rows[n].WebhookID]
		if of.Endpoint == nil {
			continue
		}
		one := DueDelivery{Delivery: rows[n].delivery()}
		if one.Test {
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

// claimedRows reads the rows of claims.
func (s *Store) claimedRows(ctx context.Context, claims []Claim) (rows []deliveryRow, err error) {
	type claimRow struct {
		WebhookID uuid.UUID `bun:"webhook_id,type:uuid"`
		Most      int       `bun:"most,type:integer"`
	}
	limits, wanted := make([]claimRow, len(claims)), make(map[uuid.UUID]*Claim, len(claims))
	for n, c := range claims {
		limits[n], wanted[c.WebhookID] = claimRow{c.WebhookID, c.Limit + len(c.InFlight)}, &Claim{Limit: c.Limit, InFlight: c.InFlight}
	}
	err = s.db.NewRaw(`WITH claims (webhook_id, most) AS (?) SELECT due.* FROM claims CROSS JOIN LATERAL (
			SELECT * FROM deliveries WHERE webhook_id = claims.webhook_id AND status = 'pending' AND next_attempt_at <= clock_timestamp()
			ORDER BY next_attempt_at LIMIT claims.most) AS due ORDER BY due.webhook_id, due.next_attempt_at`, s.db.NewValues(&limits)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the due deliveries of %d webhooks: %w", len(claims), err)
	}
	return slices.DeleteFunc(rows, func(row deliveryRow) bool {
		c := wanted[row.WebhookID]
		if c.Limit == 0 || slices.Contains(c.InFlight, feed.ID(row.EventID)) {
			return true
		}
		c.Limit--
		return false
	}), nil
}

// ActiveWebhooks reads those of these endpoints that still receive events.
func (s *Store) ActiveWebhooks(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*Endpoint, error) {
	var rows []webhookRow
	if err := s.db.NewSelect().Model(&rows).Where("id IN (?)", bun.List(ids)).Where(ofActiveAccount).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read %d webhooks: %w", len(ids), err)
	}
	active := make(map[uuid.UUID]*Endpoint, len(rows))
	for n := range rows {
		active[rows[n].ID] = rows[n].endpoint()
	}
	return active, nil
}

// AttemptRecord is the result of an attempt, with the state of its delivery when the attempt started.
type AttemptRecord struct {
	Endpoint *Endpoint
	Delivery Delivery
	Attempt  Attempt
}

// Recorded is the result of RecordAttempts. It names results by their index.
type Recorded struct {
	// Disabled are the reasons why endpoints were disabled.
	Disabled []Reason
	// Busy are not written, because another transaction has locked a row of their endpoint.
	Busy []int
	// Lost are not written, because writing those of their endpoint fails with Err.
	Lost []int
	Err  error
}

// RecordAttempts writes the results of attempts, and in the same transaction their effects on the endpoints. It ignores a result if
// the delivery has changed since, because of a retry or an attempt of another process. With mail it queues mails to the owners of
// endpoints that it disables. What fails for one endpoint fails for no other; err means that the database failed for all.
func (s *Store) RecordAttempts(ctx context.Context, records []AttemptRecord, mail bool) (Recorded, error) {
	ordinals := make([]int, len(records))
	for n := range records {
		ordinals[n] = n
	}
	recorded, err := s.recordAttempts(ctx, records, ordinals, mail)
	if err == nil || postgres.Unavailable(err) && !postgres.IsLocked(err) {
		return recorded, err
	}
	ofEndpoint := map[uuid.UUID][]int{}
	for n, r := range records {
		ofEndpoint[r.Endpoint.ID] = append(ofEndpoint[r.Endpoint.ID], n)
	}
	recorded = Recorded{}
	for id, of := range ofEndpoint {
		one, err := s.recordAttempts(ctx, records, of, mail)
		switch {
		case err == nil:
			recorded.Disabled, recorded.Busy = append(recorded.Disabled, one.Disabled...), append(recorded.Busy, one.Busy...)
		case postgres.Unavailable(err):
			recorded.Busy = append(recorded.Busy, of...)
		default:
			recorded.Lost, recorded.Err = append(recorded.Lost, of...), errors.Join(recorded.Err, fmt.Errorf("webhook %s: %w", id, err))
		}
	}
	return recorded, nil
}

// recordAttempts writes some of the results in one transaction.
func (s *Store) recordAttempts(ctx context.Context, records []AttemptRecord, ordinals []int, mail bool) (recorded Recorded, err error) {
	chosen := make([]AttemptRecord, len(ordinals))
	for n, ordinal := range ordinals {
		chosen[n] = records[ordinal]
	}
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		health, err := tx.lockHealth(ctx, chosen)
		if err != nil {
			return err
		}
		var counted []AttemptRecord
		for n, r := range chosen {
			switch {
			case health.busy[r.Endpoint.ID]:
				recorded.Busy = append(recorded.Busy, ordinals[n])
			case health.counts(r):
				counted = append(counted, r)
			}
		}
		applied, err := tx.applyAttempts(ctx, counted)
		if err != nil {
			return err
		}
		recorded.Disabled, err = tx.recordHealth(ctx, health, applied, mail)
		return err
	})
	if err != nil {
		return Recorded{}, err
	}
	return recorded, nil
}

// outcomeRow is the new state of a delivery, applied if it is still due at DueAt after this number of attempts.
type outcomeRow struct {
	Ordinal        int        `bun:"ordinal,type:integer"`
	WebhookID      uuid.UUID  `bun:"webhook_id,type:uuid"`
	EventID        uuid.UUID  `bun:"event_id,type:uuid"`
	Attempts       int        `bun:"attempts,type:integer"`
	DueAt          *time.Time `bun:"due_at,type:timestamptz"`
	Status         Status     `bun:"status,type:text"`
	NextAttemptAt  *time.Time `bun:"next_attempt_at,type:timestamptz"`
	ResponseStatus *int       `bun:"response_status,type:integer"`
	Error          *string    `bun:"error,type:text"`
	EndedAt        time.Time  `bun:"ended_at,type:timestamptz"`
	// Attempted is false if no request was made.
	Attempted    bool    `bun:"attempted,type:boolean"`
	DurationMS   int64   `bun:"duration_ms,type:integer"`
	ResponseBody *string `bun:"response_body,type:text"`
}

// applyAttempts writes the results in the order of the primary key, which prevents deadlocks, and returns those that it wrote.
func (tx Tx) applyAttempts(ctx context.Context, records []AttemptRecord) (applied []AttemptRecord, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	rows := make([]outcomeRow, len(records))
	for n, r := range records {
		status, next := r.Attempt.After(r.Delivery.Attempts)
		rows[n] = outcomeRow{
			Ordinal: n, WebhookID: r.Delivery.WebhookID, EventID: uuid.UUID(r.Delivery.EventID), Attempts: r.Delivery.Attempts,
			DueAt: r.Delivery.NextAttemptAt, Status: status, EndedAt: r.Attempt.EndedAt,
			Attempted: r.Attempt.Outcome != EventGone, DurationMS: min(r.Attempt.Duration.Milliseconds(), math.MaxInt32),
		}
		if status == Retrying {
			rows[n].Status, rows[n].NextAttemptAt = Pending, &next
		}
		if r.Attempt.ResponseStatus != 0 {
			rows[n].ResponseStatus, rows[n].ResponseBody = &r.Attempt.ResponseStatus, &r.Attempt.ResponseBody
		}
		if text := r.Attempt.Outcome.Text(); text != "" {
			rows[n].Error = &text
		}
	}
	slices.SortFunc(rows, func(a, b outcomeRow) int {
		return cmp.Or(cmp.Compare(a.WebhookID.String(), b.WebhookID.String()), cmp.Compare(a.EventID.String(), b.EventID.String()))
	})
	var ordinals []int
	err = tx.db.NewRaw(`WITH outcomes (ordinal, webhook_id, event_id, attempts, due_at, status, next_attempt_at, response_status, error, ended_at,
			attempted, duration_ms, response_body) AS (?0), current AS (
			SELECT outcomes.* FROM outcomes JOIN deliveries USING (webhook_id, event_id)
			WHERE deliveries.status = 'pending' AND deliveries.attempts = outcomes.attempts AND deliveries.next_attempt_at = outcomes.due_at
			ORDER BY webhook_id, event_id FOR NO KEY UPDATE OF deliveries
		), attempts AS (
			INSERT INTO delivery_attempts (webhook_id, event_id, ended_at, duration_ms, response_status, error, response_body)
			SELECT webhook_id, event_id, ended_at, duration_ms, response_status, error, response_body FROM current WHERE attempted ON CONFLICT DO NOTHING
		) UPDATE deliveries SET status = current.status, attempts = deliveries.attempts + 1, next_attempt_at = current.next_attempt_at,
			response_status = current.response_status, error = current.error, updated_at = current.ended_at
		FROM current WHERE deliveries.webhook_id = current.webhook_id AND deliveries.event_id = current.event_id RETURNING current.ordinal`,
		tx.db.NewValues(&rows)).Scan(ctx, &ordinals)
	if err != nil {
		return nil, fmt.Errorf("record %d attempts: %w", len(records), err)
	}
	for _, n := range ordinals {
		applied = append(applied, records[n])
	}
	return applied, nil
}
