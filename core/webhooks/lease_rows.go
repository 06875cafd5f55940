package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// Lease is the right to send to endpoints. Holder identifies a process; the lease ends TTL after it was taken or renewed.
// A process that was paused past it may send an event again that another process also sends, with the same webhook-id; its
// results are not recorded.
type Lease struct {
	Holder uuid.UUID
	TTL    time.Duration
}

// freeLease is the condition for endpoints without a current lease.
const freeLease = "webhooks.lease_until < clock_timestamp()"

// LeasedWebhook is an endpoint whose lease the holder has.
type LeasedWebhook struct {
	ID        uuid.UUID
	AccountID uuid.UUID
	// Failing is set if its last attempt failed.
	Failing bool
}

// LeaseRoom is how many leases a process may take.
type LeaseRoom struct {
	// Free is how many, and Shared how many of them accounts may take that have a lease already; the others are reserved for
	// accounts without one.
	Free, Shared int
}

// leaseShareDivisor bounds the leases of an account to a quarter of the shared ones that are free.
const leaseShareDivisor = 4

// LeaseDue takes the lease of free endpoints with a due delivery, and returns them, with room for those that are not failing and
// room for those that are. Every account gets one before another gets its second, and none more than its share of what is free, with
// those that it has already. Of an account's endpoints, and between accounts, the one that has waited longest is first: a failing one
// since its last attempt. LeaseDue finds them by a loose scan of the index on pending deliveries, which reads one entry for each
// endpoint.
func (s *Store) LeaseDue(ctx context.Context, lease Lease, healthy, failing LeaseRoom) (leased []LeasedWebhook, err error) {
	err = s.db.NewRaw(dueEndpoints+`, waiting AS (
			SELECT id, account_id, failing_since IS NOT NULL AS failing,
				CASE WHEN failing_since IS NULL THEN next_attempt_at ELSE greatest(next_attempt_at, last_failed_at) END AS since
			FROM due JOIN webhooks ON webhooks.id = due.webhook_id WHERE `+freeLease+` AND `+ofActiveAccount+`
		), held AS (
			SELECT waiting.account_id, webhooks.failing_since IS NOT NULL AS failing, count(*) AS leases
			FROM (SELECT DISTINCT account_id FROM waiting) AS waiting JOIN webhooks ON webhooks.account_id = waiting.account_id
			WHERE lease_holder = ?0 AND lease_until > clock_timestamp() GROUP BY 1, 2
		), room (failing, free, shared) AS (VALUES (false, ?2, ?3), (true, ?4, ?5)
		), ranked AS (
			SELECT id, failing, since, coalesce(leases, 0) + row_number() OVER (PARTITION BY account_id, failing ORDER BY since, id) AS turn
			FROM waiting LEFT JOIN held USING (account_id, failing)
		), placed AS (
			SELECT id, failing, turn, row_number() OVER (PARTITION BY failing ORDER BY turn, since, id) AS place FROM ranked
		), chosen AS (
			SELECT id FROM placed JOIN room USING (failing) WHERE place <= free AND (turn = 1 OR place <= shared AND turn <= shared / ?6)
		) UPDATE webhooks SET lease_holder = ?0, lease_until = clock_timestamp() + ?1 * interval '1 millisecond'
		WHERE id IN (SELECT id FROM webhooks WHERE id IN (SELECT id FROM chosen) AND `+freeLease+` ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
		RETURNING id, account_id, failing_since IS NOT NULL AS failing`,
		lease.Holder, lease.TTL.Milliseconds(), healthy.Free, healthy.Shared, failing.Free, failing.Shared, leaseShareDivisor).Scan(ctx, &leased)
	if err != nil {
		return nil, fmt.Errorf("lease webhooks with due deliveries: %w", err)
	}
	return leased, nil
}

// dueEndpoints are the endpoints with due deliveries, and since when.
const dueEndpoints = `WITH RECURSIVE first_pending AS (
		(SELECT webhook_id, next_attempt_at FROM deliveries WHERE status = 'pending' ORDER BY webhook_id, next_attempt_at LIMIT 1)
		UNION ALL SELECT next.webhook_id, next.next_attempt_at FROM first_pending CROSS JOIN LATERAL (
			SELECT webhook_id, next_attempt_at FROM deliveries WHERE status = 'pending' AND webhook_id > first_pending.webhook_id
			ORDER BY webhook_id, next_attempt_at LIMIT 1) AS next
	), due AS (SELECT webhook_id, next_attempt_at FROM first_pending WHERE next_attempt_at <= clock_timestamp())`

// RenewLeases extends the leases of endpoints that no other process has taken meanwhile. It waits for no lock, because
// transactions that create deliveries lock the rows of many endpoints.
func (s *Store) RenewLeases(ctx context.Context, lease Lease, ids []uuid.UUID) (r postgres.Renewal[uuid.UUID], err error) {
	if len(ids) == 0 {
		return r, nil
	}
	var held []struct {
		ID      uuid.UUID
		Renewed bool
	}
	err = s.db.NewRaw(`WITH free AS (
			SELECT id FROM webhooks WHERE id IN (?2) AND lease_holder = ?0 ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
		), renewed AS (
			UPDATE webhooks SET lease_until = clock_timestamp() + ?1 * interval '1 millisecond' FROM free WHERE webhooks.id = free.id RETURNING webhooks.id
		) SELECT id, id IN (SELECT id FROM renewed) AS renewed FROM webhooks WHERE id IN (?2) AND lease_holder = ?0`,
		lease.Holder, lease.TTL.Milliseconds(), bun.List(ids)).Scan(ctx, &held)
	if err != nil {
		return r, fmt.Errorf("renew the leases of %d webhooks: %w", len(ids), err)
	}
	isHeld := make(map[uuid.UUID]bool, len(held))
	for _, row := range held {
		isHeld[row.ID] = true
		if !row.Renewed {
			r.Locked = append(r.Locked, row.ID)
		}
	}
	for _, id := range ids {
		if !isHeld[id] {
			r.Lost = append(r.Lost, id)
		}
	}
	return r, nil
}

// ReleaseIdleLeases releases the leases of endpoints without due deliveries. It returns the endpoints that the holder keeps,
// because a delivery is due or their row was locked.
func (s *Store) ReleaseIdleLeases(ctx context.Context, lease Lease, ids []uuid.UUID) (kept []uuid.UUID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.db.NewRaw(`WITH idle AS (
			SELECT id FROM webhooks WHERE id IN (?1) AND lease_holder = ?0 AND NOT (`+ofActiveAccount+` AND EXISTS (
				SELECT FROM deliveries WHERE webhook_id = webhooks.id AND status = 'pending' AND next_attempt_at <= clock_timestamp()))
			ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
		), released AS (
			UPDATE webhooks SET lease_until = '-infinity' FROM idle WHERE webhooks.id = idle.id RETURNING webhooks.id
		) SELECT id FROM webhooks WHERE id IN (?1) AND lease_holder = ?0 AND lease_until > clock_timestamp() AND id NOT IN (SELECT id FROM released)`,
		lease.Holder, bun.List(ids)).Scan(ctx, &kept)
	if err != nil {
		return nil, fmt.Errorf("release the leases of %d webhooks: %w", len(ids), err)
	}
	return kept, nil
}

// ReleaseLeases releases leases at once.
func (s *Store) ReleaseLeases(ctx context.Context, lease Lease, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := s.db.NewRaw(`UPDATE webhooks SET lease_until = '-infinity' WHERE id IN (
		SELECT id FROM webhooks WHERE id IN (?1) AND lease_holder = ?0 ORDER BY id FOR NO KEY UPDATE)`, lease.Holder, bun.List(ids)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release the leases of %d webhooks: %w", len(ids), err)
	}
	return nil
}

// Backlog is how long events have waited for endpoints. Endpoints that are disabled or of accounts that get nothing are excluded.
// An event waits for its delivery from when it got its position, but at the earliest from the last change of its endpoint, which may
// have enabled or replayed it.
type Backlog struct {
	// Age is the longest time for which an event has waited, 0 if none waits: for its delivery, or with a due delivery for the
	// result of its attempt.
	Age time.Duration
	// Unleased is that of the events that no process attends to: those without a delivery, and those with a due delivery of an
	// endpoint that is not failing and that no process has leased.
	Unleased time.Duration
}

// Backlog reads the backlog of all endpoints.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	var row struct{ Age, Unleased float64 } // seconds
	err := s.db.NewRaw(dueEndpoints+`, waiting AS (
			SELECT due.next_attempt_at AS since, `+freeLease+` AND failing_since IS NULL AS unleased
			FROM due JOIN webhooks ON webhooks.id = due.webhook_id WHERE `+ofActiveAccount+`
			UNION ALL SELECT `+waitingSince+`, true FROM webhooks CROSS JOIN LATERAL (`+nextEvent+`) AS next WHERE `+ofActiveAccount+`
		), oldest AS (SELECT min(since) AS any_since, min(since) FILTER (WHERE unleased) AS unleased_since FROM waiting)
		SELECT coalesce(extract(epoch FROM clock.now - any_since), 0)::float8 AS age,
			coalesce(extract(epoch FROM clock.now - unleased_since), 0)::float8 AS unleased
		FROM oldest, (SELECT clock_timestamp() AS now) AS clock`).Scan(ctx, &row)
	if err != nil {
		return Backlog{}, fmt.Errorf("read the backlog of webhooks: %w", err)
	}
	duration := func(seconds float64) time.Duration { return max(0, time.Duration(seconds*float64(time.Second))) }
	return Backlog{Age: duration(row.Age), Unleased: duration(row.Unleased)}, nil
}
