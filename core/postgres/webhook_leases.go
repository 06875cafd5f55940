package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// WebhookLease is the right to send to endpoints. Holder identifies a process; the lease ends TTL after it was taken or renewed.
// A process that was paused past it may send an event again that another process also sends, with the same webhook-id; its
// results are not recorded.
type WebhookLease struct {
	Holder uuid.UUID
	TTL    time.Duration
}

// freeLease is the condition for endpoints without a current lease.
const freeLease = "webhooks.lease_until < clock_timestamp()"

// LeaseDue takes the lease of at most limit free endpoints with a due delivery, and returns them. It finds them by a loose scan
// of the index on pending deliveries, which reads one entry for each endpoint.
func (s *Store) LeaseDue(ctx context.Context, lease WebhookLease, limit int) (leased []uuid.UUID, err error) {
	err = s.db.NewRaw(dueEndpoints+` UPDATE webhooks SET lease_holder = ?0, lease_until = clock_timestamp() + ?1 * interval '1 millisecond'
		WHERE id IN (SELECT id FROM webhooks WHERE id IN (SELECT webhook_id FROM due) AND `+freeLease+` AND `+ofActiveAccount+`
			ORDER BY id LIMIT ?2 FOR NO KEY UPDATE SKIP LOCKED) RETURNING id`,
		lease.Holder, lease.TTL.Milliseconds(), limit).Scan(ctx, &leased)
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

// Renewal lists the leases that were not renewed.
type Renewal struct {
	// Lost are the endpoints that another process sends to now, or that are deleted.
	Lost []uuid.UUID
	// Locked are the endpoints of the holder whose rows were locked: their leases end as before.
	Locked []uuid.UUID
}

// RenewLeases extends the leases of endpoints that no other process has taken meanwhile. It waits for no lock, because
// transactions that create deliveries lock the rows of many endpoints.
func (s *Store) RenewLeases(ctx context.Context, lease WebhookLease, ids []uuid.UUID) (r Renewal, err error) {
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
func (s *Store) ReleaseIdleLeases(ctx context.Context, lease WebhookLease, ids []uuid.UUID) (kept []uuid.UUID, err error) {
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
func (s *Store) ReleaseLeases(ctx context.Context, lease WebhookLease, ids []uuid.UUID) error {
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

// BacklogAge is how long the oldest event has waited for an endpoint: until its delivery is created, or with a due delivery until
// a process leases the endpoint. It is 0 if none waits. Endpoints that are disabled or of accounts that get nothing are excluded,
// and so are due deliveries of leased endpoints. An event waits for its delivery from when it got its position, but at the
// earliest from the last change of its endpoint, which may have enabled or replayed it.
func (s *Store) BacklogAge(ctx context.Context) (age time.Duration, err error) {
	var seconds float64
	err = s.db.NewRaw(dueEndpoints+`, waiting AS (
			SELECT due.next_attempt_at AS since FROM due JOIN webhooks ON webhooks.id = due.webhook_id WHERE `+freeLease+` AND `+ofActiveAccount+`
			UNION ALL SELECT `+waitingSince+` FROM webhooks CROSS JOIN LATERAL (`+nextEvent+`) AS next WHERE `+ofActiveAccount+`
		) SELECT coalesce(extract(epoch FROM clock_timestamp() - min(since)), 0) FROM waiting`).Scan(ctx, &seconds)
	if err != nil {
		return 0, fmt.Errorf("read the backlog of webhooks: %w", err)
	}
	return max(0, time.Duration(seconds*float64(time.Second))), nil
}
