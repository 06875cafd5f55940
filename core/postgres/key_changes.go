package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrCursorExpired is returned for a cursor that is malformed, older than what is kept, or of another history, as after one
// has gone back to a backup or to a standby that had not seen everything.
var ErrCursorExpired = errors.New("the cursor is too old or not one of ours")

// KeyChanges lists the hashes of the keys that changed since the cursor, each once, and the cursor to ask with next.
// An empty cursor stands for now. No change is ever left out and none is told twice, however late its transaction
// commits: the cursor is the whole snapshot of the last reading, and what was not visible in it is new.
func (s *Store) KeyChanges(ctx context.Context, after string, now time.Time) (hashes []string, next string, err error) {
	previous, err := parseCursor(after, now)
	if err != nil {
		return nil, "", err
	}
	current := cursor{taken: now}
	var joined string
	var ahead bool
	var lag float64
	if previous == (cursor{}) {
		err = s.db.NewRaw("SELECT "+currentHistory+", pg_current_snapshot()::text").Scan(ctx, &current.history, &current.snapshot)
	} else {
		// One statement, so that the changes and the next cursor come from one snapshot.
		err = s.db.NewRaw(`SELECT `+currentHistory+`, pg_current_snapshot()::text,
			pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()),
			coalesce(string_agg(DISTINCT encode(hash, 'hex'), ','), ''),
			coalesce(extract(epoch FROM clock_timestamp() - min(changed_at)), 0)
			FROM key_changes
			WHERE xid >= pg_snapshot_xmin(?0::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot)`,
			previous.snapshot).Scan(ctx, &current.history, &current.snapshot, &ahead, &joined, &lag)
		ahead = ahead || previous.history != current.history
	}
	if sqlState(err) == invalidText {
		return nil, "", ErrCursorExpired
	}
	if err != nil {
		return nil, "", fmt.Errorf("read key changes: %w", err)
	}
	if ahead {
		return nil, "", ErrCursorExpired
	}
	if joined != "" {
		hashes = strings.Split(joined, ",")
		s.metrics.keyChangeLag.Observe(lag)
	}
	return hashes, current.String(), nil
}
