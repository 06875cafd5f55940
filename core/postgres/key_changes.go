package postgres

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// keyChangesKept is for how long a reader of key changes may stay away before it must start again.
const keyChangesKept = 24 * time.Hour

// ErrCursorExpired is returned for a cursor that is malformed, older than what is kept, or ahead of the database, as
// happens when one goes back to a backup or to a standby that had not seen everything.
var ErrCursorExpired = errors.New("the cursor is too old or not one of ours")

// KeyChanges lists the hashes of the keys that changed since the cursor, each once, and the cursor to ask with next.
// An empty cursor stands for now. No change is ever left out and none is told twice, however late its transaction
// commits: the cursor is the whole snapshot of the last reading, and what was not visible in it is new.
func (s *Store) KeyChanges(ctx context.Context, cursor string, now time.Time) (hashes []string, next string, err error) {
	previous, err := parseCursor(cursor, now)
	if err != nil {
		return nil, "", err
	}
	var snapshot, joined string
	var ahead bool
	var lag float64
	if previous == "" {
		err = s.db.NewRaw("SELECT pg_current_snapshot()::text").Scan(ctx, &snapshot)
	} else {
		// One statement, so that the changes and the next cursor come from one snapshot.
		err = s.db.NewRaw(`SELECT pg_current_snapshot()::text,
			pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()),
			coalesce(string_agg(DISTINCT encode(hash, 'hex'), ','), ''),
			coalesce(extract(epoch FROM clock_timestamp() - min(changed_at)), 0)
			FROM key_changes
			WHERE xid >= pg_snapshot_xmin(?0::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot)`,
			previous).Scan(ctx, &snapshot, &ahead, &joined, &lag)
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
	return hashes, formatCursor(snapshot, now), nil
}

// formatCursor writes the snapshot and when it was taken in a form that passes through URLs.
func formatCursor(snapshot string, taken time.Time) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(taken.Unix(), 10) + "/" + snapshot))
}

var snapshotForm = regexp.MustCompile(`^[0-9]{1,20}:[0-9]{1,20}:([0-9]{1,20}(,[0-9]{1,20})*)?$`)

func parseCursor(cursor string, now time.Time) (snapshot string, err error) {
	if cursor == "" {
		return "", nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", ErrCursorExpired
	}
	taken, snapshot, _ := strings.Cut(string(decoded), "/")
	unix, err := strconv.ParseInt(taken, 10, 64)
	if err != nil || !snapshotForm.MatchString(snapshot) || now.Sub(time.Unix(unix, 0)) > keyChangesKept {
		return "", ErrCursorExpired
	}
	return snapshot, nil
}
