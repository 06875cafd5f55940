package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// dispatchLease is the name of the lease of the process that dispatches events to webhooks.
const dispatchLease = "webhook dispatch"

// AcquireDispatchLease takes or renews the lease of the one process that dispatches events; held is false while another process has it.
// The lease is for fairness, as one process knows who has waited for how long. It is no lock: DispatchEvents creates each
// delivery once, also if a process that was paused past its lease still dispatches.
func (s *Store) AcquireDispatchLease(ctx context.Context, lease Lease) (held bool, err error) {
	err = s.db.NewRaw(`INSERT INTO leases AS l (name, holder, lease_until) VALUES (?0, ?1, clock_timestamp() + ?2 * interval '1 millisecond')
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
		WHERE l.holder = excluded.holder OR l.lease_until < clock_timestamp() RETURNING true`,
		dispatchLease, lease.Holder, lease.TTL.Milliseconds()).Scan(ctx, &held)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("acquire the lease of the webhook dispatch: %w", err)
	}
	return true, nil
}

// ReleaseDispatchLease lets another process dispatch at once.
func (s *Store) ReleaseDispatchLease(ctx context.Context, lease Lease) error {
	if _, err := s.db.NewRaw("DELETE FROM leases WHERE name = ? AND holder = ?", dispatchLease, lease.Holder).Exec(ctx); err != nil {
		return fmt.Errorf("release the lease of the webhook dispatch: %w", err)
	}
	return nil
}
