package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// ChangeCheck says whether the intents of an account have changed since a cursor.
type ChangeCheck struct {
	// Changed is true if any intent of the account was made or changed its status.
	Changed bool
	// Cursor is the one for the next check.
	Cursor string

	// replica is the position at which the replica has everything that the check has seen; zero sends the list to the primary.
	replica replicaPosition
}

// CheckChanges tells whether any of an account's intents was made or changed its status since the cursor, and returns
// the cursor for now. It reads the events since the cursor and no intent, so it costs little however long the lists are.
// After a cursor that is empty, too old or malformed they count as changed.
func (s *Store) CheckChanges(ctx context.Context, accountID uuid.UUID, after string, now time.Time) (ChangeCheck, error) {
	previous, err := parseCursor(after, now)
	if err != nil {
		previous = cursor{} // nothing is known of the client's list
	}
	if previous == (cursor{}) { // the list will be read, so the check waits as the list would
		release, err := s.listSemaphore.Acquire(ctx, accountID, listBatch)
		if err != nil {
			return ChangeCheck{}, err
		}
		defer release()
	}
	check, current, err := s.checkChanges(ctx, accountID, previous)
	if err != nil {
		return ChangeCheck{}, err
	}
	current.takenAt = now
	check.Cursor = current.String()
	return check, nil
}

// checkChanges asks the primary, in one statement, for changes since a cursor and for changes that the replica may lack.
func (s *Store) checkChanges(ctx context.Context, accountID uuid.UUID, previous cursor) (check ChangeCheck, current cursor, err error) {
	replayed := s.replica.newest()
	changed, onReplica := s.db.NewRaw("true"), s.db.NewRaw("false")
	if previous != (cursor{}) {
		changed = s.changedSince(accountID, previous.snapshot.text)
	}
	if replayed != nil {
		onReplica = s.db.NewRaw("NOT ?", s.changedSince(accountID, replayed.Snapshot))
	}
	var row struct {
		Cluster, Snapshot  string
		Changed, OnReplica bool
	}
	err = s.db.NewRaw("SELECT "+clusterIdentity+" AS cluster, pg_current_snapshot()::text AS snapshot, ? AS changed, ? AS on_replica",
		changed, onReplica).Scan(ctx, &row)
	if err != nil {
		return ChangeCheck{}, cursor{}, fmt.Errorf("check account %s for changes: %w", accountID, err)
	}
	check.Changed = row.Changed || row.Cluster != previous.cluster
	switch {
	case row.OnReplica && row.Cluster == replayed.Cluster:
		check.replica = replicaPosition{cluster: replayed.Cluster, lsn: replayed.LSN}
	case replayed != nil && row.Changed:
		s.replica.metrics.countFallback(errChanged)
	}
	current.cluster = row.Cluster
	if current.snapshot, err = parseSnapshot(row.Snapshot); err != nil {
		return ChangeCheck{}, cursor{}, fmt.Errorf("check account %s for changes: %q: %w", accountID, row.Snapshot, err)
	}
	return check, current, nil
}

// changedSince is true where the account has an event that a snapshot does not see, or the database is older than the snapshot, as
// after its restore from a backup.
func (s *Store) changedSince(accountID uuid.UUID, snapshot string) *bun.RawQuery {
	return s.db.NewRaw(`(pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) OR EXISTS (
		SELECT FROM events WHERE account_id = ?1 AND xid >= pg_snapshot_xmin(?0::pg_snapshot)
		AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot)))`, snapshot, accountID)
}
