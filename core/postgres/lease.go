package postgres

import (
	"context"
	"time"
)

// renewRetry is the pause before locked leases are renewed again.
const renewRetry = 100 * time.Millisecond

// Renewal lists the leases that a statement has not renewed.
type Renewal[L any] struct {
	// Lost are those that other processes have now, or whose rows are deleted.
	Lost []L
	// Locked are those whose rows other transactions have locked. They end when they would have ended before.
	Locked []L
}

// RenewLeases renews leases by renew, which waits for no lock: a locked row would delay all others. Locked leases are tried again until
// ctx ends. lost is called for each lease that another process has taken.
func RenewLeases[L any](ctx context.Context, leases []L, renew func(context.Context, []L) (Renewal[L], error), lost func(L)) error {
	for len(leases) > 0 {
		renewal, err := renew(ctx, leases)
		if err != nil {
			return err
		}
		for _, lease := range renewal.Lost {
			lost(lease)
		}
		if leases = renewal.Locked; len(leases) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewRetry):
		}
	}
	return nil
}
