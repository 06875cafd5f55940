package intents

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// ChangeCheck reports whether the intents of an account have changed since a cursor.
type ChangeCheck struct {
	// Changed is true if any intent of the account was created or changed its status.
	Changed bool
	// Cursor is the cursor for the next check.
	Cursor string

	// replica is the replica position that includes everything that the check has seen; zero means that the list is read from the
	// primary.
	replica postgres.ReplicaPosition
}

// CheckChanges reports whether any of an account's intents was created or changed its status since the cursor, and returns the
// current cursor. It reads only the events since the cursor, so its cost does not depend on the length of lists. If the cursor is
// empty, too old or malformed, Changed is true.
func (s *Store) CheckChanges(ctx context.Context, accountID uuid.UUID, after string, now time.Time) (ChangeCheck, error) {
	previous, err := postgres.ParseCursor(after, now)
	if err != nil {
		previous = postgres.Cursor{} // the state of the client's list is unknown
	}
	if previous == (postgres.Cursor{}) { // the list will be read, so the check waits as long as the list would
		release, err := s.db.LongLists.Acquire(ctx, accountID, listBatch)
		if err != nil {
			return ChangeCheck{}, err
		}
		defer release()
	}
	check, current, err := s.checkChanges(ctx, accountID, previous)
	if err != nil {
		return ChangeCheck{}, err
	}
	current.TakenAt = now
	check.Cursor = current.String()
	return check, nil
}

// checkChanges asks the primary, in one statement, for changes since a cursor and for changes that the replica may lack.
func (s *Store) checkChanges(ctx context.Context, accountID uuid.UUID, previous postgres.Cursor) (check ChangeCheck, current postgres.Cursor, err error) {
	replayed := s.db.Replica.Newest()
	changed, onReplica := s.db.NewRaw("true"), s.db.NewRaw("false")
	if previous != (postgres.Cursor{}) {
		changed = s.changedSince(accountID, previous.Snapshot.Text)
	}
	if replayed != nil {
		onReplica = s.db.NewRaw("NOT ?", s.changedSince(accountID, replayed.Snapshot))
	}
	var row struct {
		Cluster, Snapshot  string
		Changed, OnReplica bool
	}
	err = s.db.NewRaw("SELECT "+postgres.ClusterIdentity+" AS cluster, pg_current_snapshot()::text AS snapshot, ? AS changed, ? AS on_replica",
		changed, onReplica).Scan(ctx, &row)
	if err != nil {
		return ChangeCheck{}, postgres.Cursor{}, fmt.Errorf("check account %s for changes: %w", accountID, err)
	}
	check.Changed = row.Changed || row.Cluster != previous.Cluster
	switch {
	case row.OnReplica && row.Cluster == replayed.Cluster:
		check.replica = replayed.Position()
	case replayed != nil && row.Changed:
		s.db.Replica.CountChanged()
	}
	current.Cluster = row.Cluster
	if current.Snapshot, err = postgres.ParseSnapshot(row.Snapshot); err != nil {
		return ChangeCheck{}, postgres.Cursor{}, fmt.Errorf("check account %s for changes: %q: %w", accountID, row.Snapshot, err)
	}
	return check, current, nil
}

// changedSince is true if the account has an event that a snapshot does not see, or if the database is older than the snapshot,
// as after a restore from a backup.
func (s *Store) changedSince(accountID uuid.UUID, snapshot string) *bun.RawQuery {
	return s.db.NewRaw(`(pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) OR EXISTS (
		SELECT FROM events WHERE account_id = ?1 AND xid >= pg_snapshot_xmin(?0::pg_snapshot)
		AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot)))`, snapshot, accountID)
}
