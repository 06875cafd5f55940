package watched

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/postgres"
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

// Watching records that a process can follow chains, for ttl by the database's clock, and returns which chains each process that is alive
// can follow.
func (s *Store) Watching(ctx context.Context, holder string, chains []caip.ChainID, ttl time.Duration) (map[string][]string, error) {
	_, err := s.db.NewRaw(`INSERT INTO watchers (holder, chains, alive_until) VALUES (?, ?, clock_timestamp() + ? * interval '1 millisecond')
		ON CONFLICT (holder) DO UPDATE SET chains = excluded.chains, alive_until = excluded.alive_until`,
		holder, pgdialect.Array(texts(chains)), ttl.Milliseconds()).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("record that this process follows chains: %w", err)
	}
	var rows []struct {
		Holder string   `bun:"holder"`
		Chains []string `bun:"chains,array"`
	}
	err = s.db.NewRaw(`WITH dead AS (DELETE FROM watchers WHERE holder IN (
			SELECT holder FROM watchers WHERE alive_until < clock_timestamp() - interval '1 hour' FOR UPDATE SKIP LOCKED))
		SELECT holder, chains FROM watchers WHERE alive_until >= clock_timestamp()`).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read which processes follow chains: %w", err)
	}
	alive := make(map[string][]string, len(rows))
	for _, row := range rows {
		alive[row.Holder] = row.Chains
	}
	return alive, nil
}

// EndWatching tells the other processes that one follows no chains any more.
func (s *Store) EndWatching(ctx context.Context, holder string) error {
	if _, err := s.db.NewRaw("DELETE FROM watchers WHERE holder = ?", holder).Exec(ctx); err != nil {
		return fmt.Errorf("record that this process follows no chains: %w", err)
	}
	return nil
}

func texts(chains []caip.ChainID) []string {
	all := make([]string, len(chains))
	for n, id := range chains {
		all[n] = id.String()
	}
	return all
}

// AcquireLeases takes the leases that nobody holds, for ttl by the database's clock: of the chains that are the process's own, and of others
// that nobody has held for ttl. It waits for no lock: a chain that is being written to has a holder.
func (s *Store) AcquireLeases(ctx context.Context, own, others []caip.ChainID, holder string, ttl time.Duration) (leases []Lease, err error) {
	if len(own) > 0 {
		_, err = s.db.NewRaw(`INSERT INTO watched_chains (chain_id, holder, epoch, lease_until)
			SELECT chain_id, ?1, 0, '-infinity' FROM unnest(?0::text[]) AS own (chain_id) WHERE chain_id NOT IN (SELECT chain_id FROM watched_chains)
			ON CONFLICT DO NOTHING`, pgdialect.Array(texts(own)), holder).Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("prepare the leases of %d chains: %w", len(own), err)
		}
	}
	var rows []leaseRow
	err = s.db.NewRaw(`WITH free AS (SELECT chain_id FROM watched_chains
			WHERE chain_id = ANY (?0::text[]) AND lease_until < clock_timestamp()
				OR chain_id = ANY (?1::text[]) AND lease_until < clock_timestamp() - ?3 * interval '1 millisecond' FOR UPDATE SKIP LOCKED)
		UPDATE watched_chains SET holder = ?2, epoch = epoch + 1, lease_until = clock_timestamp() + ?3 * interval '1 millisecond'
		WHERE chain_id IN (SELECT chain_id FROM free) RETURNING chain_id, epoch`,
		pgdialect.Array(texts(own)), pgdialect.Array(texts(others)), holder, ttl.Milliseconds()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("acquire leases of chains: %w", err)
	}
	for _, row := range rows {
		id, err := caip.ParseChainID(row.ChainID)
		if err != nil {
			return nil, fmt.Errorf("acquire the lease of %s: %w", row.ChainID, err)
		}
		leases = append(leases, Lease{Chain: id, Epoch: row.Epoch})
	}
	return leases, nil
}

// leaseRow is a lease.
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

// ReleaseLease lets the process whose chain it is take it at once. It ends the epoch: a renewal that is on its way extends nothing.
func (s *Store) ReleaseLease(ctx context.Context, lease Lease) error {
	_, err := s.db.NewRaw("UPDATE watched_chains SET lease_until = clock_timestamp(), epoch = epoch + 1 WHERE chain_id = ? AND epoch = ?",
		lease.Chain.String(), lease.Epoch).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release the lease of %s: %w", lease.Chain, err)
	}
	return nil
}

// CheckEpoch locks the chain's row, so that no new epoch starts before the transaction ends. It returns ErrLeaseLost for an old epoch.
func (tx Tx) CheckEpoch(ctx context.Context, lease Lease) error {
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
