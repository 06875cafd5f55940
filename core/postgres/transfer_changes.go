package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Glance is what a look at an account's events has told: how its intents stood on the primary at that moment.
type Glance struct {
	// Changed tells whether any of the intents was made or changed its status since the cursor of the one before.
	Changed bool
	// Cursor is what to ask with next.
	Cursor string

	// proven is a moment since which nothing has changed and which the replica has reached; nil sends lists to the primary.
	proven *moment
}

// TransfersChanged tells whether any of an account's intents was made or changed its status since the cursor, and gives
// the cursor for now. It looks at the events since then and at no intent, so it costs little however long the lists are.
// A cursor that is empty, too old or not one of ours says that they changed.
func (s *Store) TransfersChanged(ctx context.Context, accountID uuid.UUID, after string, now time.Time) (Glance, error) {
	previous, err := parseCursor(after, now)
	if err != nil {
		previous = cursor{} // nothing is known of what the client holds
	}
	if previous == (cursor{}) { // the list will be read, and many that begin at once are a crowd already
		release, err := s.listSemaphore.Acquire(ctx, accountID, listBatch)
		if err != nil {
			return Glance{}, err
		}
		defer release()
	}
	glance, current, err := s.glance(ctx, accountID, previous)
	if err != nil {
		return Glance{}, fmt.Errorf("look for changes of account %s: %w", accountID, err)
	}
	current.takenAt = now
	glance.Cursor = current.String()
	return glance, nil
}

// glance asks the primary, in one statement, about changes since a snapshot and about those since the moment that the
// replica has reached.
func (s *Store) glance(ctx context.Context, accountID uuid.UUID, previous cursor) (glance Glance, current cursor, err error) {
	proven := s.replica.proof()
	changed, settled := s.db.NewRaw("true"), s.db.NewRaw("false")
	if previous != (cursor{}) {
		changed = s.changedSince(accountID, previous.snapshot.text)
	}
	if proven != nil {
		settled = s.db.NewRaw("NOT ?", s.changedSince(accountID, proven.Snapshot))
	}
	var answer struct {
		History, Snapshot string
		Changed, Settled  bool
	}
	err = s.db.NewRaw("SELECT "+clusterIdentity+" AS history, pg_current_snapshot()::text AS snapshot, ? AS changed, ? AS settled", changed, settled).Scan(ctx, &answer)
	if err != nil {
		return Glance{}, cursor{}, err
	}
	glance.Changed = answer.Changed || answer.History != previous.cluster
	switch {
	case answer.Settled && answer.History == proven.history():
		glance.proven = proven
	case proven != nil && answer.Changed:
		s.replica.metrics.fellBack(errChanged)
	}
	current.cluster = answer.History
	current.snapshot, err = parseSnapshot(answer.Snapshot)
	return glance, current, err
}

// changedSince is true where the account has an event that a snapshot does not see, or the database is older than that, as
// happens when one goes back to a backup.
func (s *Store) changedSince(accountID uuid.UUID, snapshot string) *bun.RawQuery {
	return s.db.NewRaw(`(pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) OR EXISTS (
		SELECT FROM events WHERE account_id = ?1 AND xid >= pg_snapshot_xmin(?0::pg_snapshot)
		AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot)))`, snapshot, accountID)
}
