package chains

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
)

// Lease is the right to write what happens on a chain. The process that takes the lease starts a new epoch, and writes in an old
// epoch fail: a process that was paused past its lease detects it at its next write. Advisory locks of a session are not usable,
// because they break behind a transaction pooler.
type Lease struct {
	Chain caip.ChainID
	Epoch int64
}

// ErrLeaseLost is returned for a write under a lease that another process has taken over.
var ErrLeaseLost = errors.New("another process watches the chain now")

// AcquireLease takes the lease of a chain that nobody holds, for ttl by the database's clock. ok is false while another process holds it.
func (s *Store) AcquireLease(ctx context.Context, chain caip.ChainID, holder string, ttl time.Duration) (lease Lease, ok bool, err error) {
	lease.Chain = chain
	err = s.db.NewRaw(`INSERT INTO watched_chains AS w (chain_id, holder, epoch, lease_until)
		VALUES (?0, ?1, 1, clock_timestamp() + ?2 * interval '1 millisecond')
		ON CONFLICT (chain_id) DO UPDATE SET holder = excluded.holder, epoch = w.epoch + 1, lease_until = excluded.lease_until
		WHERE w.lease_until < clock_timestamp() RETURNING epoch`, chain.String(), holder, ttl.Milliseconds()).Scan(ctx, &lease.Epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return lease, false, nil
	}
	if err != nil {
		return lease, false, fmt.Errorf("acquire the lease of %s: %w", chain, err)
	}
	return lease, true, nil
}

// leaseRow is a lease to renew.
type leaseRow struct {
	ChainID string `bun:"chain_id,type:text"`
	Epoch   int64  `bun:"epoch,type:bigint"`
}

// RenewLeases extends leases of the current epochs in one statement, even if they have expired meanwhile. It waits for no lock: the
// lease of a chain that is being written to is among the locked ones.
func (s *Store) RenewLeases(ctx context.Context, leases []Lease, ttl time.Duration) (r postgres.Renewal[Lease], err error) {
	if len(leases) == 0 {
		return r, nil
	}
	rows := make([]leaseRow, len(leases))
	for n, l := range leases {
		rows[n] = leaseRow{l.Chain.String(), l.Epoch}
	}
	var found []struct {
		ChainID string `bun:"chain_id"`
		Lost    bool   `bun:"lost"`
	}
	err = s.db.NewRaw(`WITH held (chain_id, epoch) AS (?0),
		free AS (SELECT chain_id FROM watched_chains JOIN held USING (chain_id, epoch) FOR UPDATE OF watched_chains SKIP LOCKED),
		renewed AS (UPDATE watched_chains SET lease_until = clock_timestamp() + ?1 * interval '1 millisecond'
			WHERE chain_id IN (SELECT chain_id FROM free) RETURNING chain_id)
		SELECT held.chain_id, watched_chains.epoch IS DISTINCT FROM held.epoch AS lost FROM held LEFT JOIN watched_chains USING (chain_id)
		WHERE held.chain_id NOT IN (SELECT chain_id FROM renewed)`, s.db.NewValues(&rows), ttl.Milliseconds()).Scan(ctx, &found)
	if err != nil {
		return r, fmt.Errorf("renew the leases of %d chains: %w", len(leases), err)
	}
	isLost := make(map[string]bool, len(found))
	for _, f := range found {
		isLost[f.ChainID] = f.Lost
	}
	for _, l := range leases {
		if lost, ok := isLost[l.Chain.String()]; lost {
			r.Lost = append(r.Lost, l)
		} else if ok {
			r.Locked = append(r.Locked, l)
		}
	}
	return r, nil
}

// ReleaseLease lets another process take the chain at once.
func (s *Store) ReleaseLease(ctx context.Context, lease Lease) error {
	_, err := s.db.NewRaw("UPDATE watched_chains SET lease_until = '-infinity' WHERE chain_id = ? AND epoch = ?",
		lease.Chain.String(), lease.Epoch).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release the lease of %s: %w", lease.Chain, err)
	}
	return nil
}

// checkEpoch locks the chain's row, so that no new epoch starts before the transaction ends.
func (tx Tx) checkEpoch(ctx context.Context, lease Lease) error {
	var epoch int64
	err := tx.db.NewRaw("SELECT epoch FROM watched_chains WHERE chain_id = ? FOR UPDATE", lease.Chain.String()).Scan(ctx, &epoch)
	if err != nil {
		return fmt.Errorf("check the lease of %s: %w", lease.Chain, err)
	}
	if epoch != lease.Epoch {
		return fmt.Errorf("write what happened on %s: %w", lease.Chain, ErrLeaseLost)
	}
	return nil
}
