package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"
)

// ErrCursorExpired says that a cursor is malformed, older than what is kept, or of another history, as after a crash of the server
// or after one has gone back to a backup or to a standby that had not seen everything.
var ErrCursorExpired = errors.New("the cursor is too old or not one of ours")

// KeyChanges is what has become of keys since a cursor.
type KeyChanges struct {
	// Hashes are those of the keys that changed, in hexadecimal, each once.
	Hashes []string
	// Expired says that the cursor is none that changes can be told since.
	Expired bool
}

// KeyChanges tells, for each of these cursors, which keys have changed since, and gives the cursor to ask with next. An empty
// cursor stands for now. No change is ever left out and none is told twice, however late its transaction commits: a
// cursor is the whole snapshot of a reading, and what was not visible in that is new. It is one statement, however many
// cursors there are.
func (s *Store) KeyChanges(ctx context.Context, after []string, now time.Time) (since map[string]KeyChanges, next string, err error) {
	since = make(map[string]KeyChanges, len(after))
	var texts, snapshots []string
	var previous []cursor
	oldest := uint64(math.MaxUint64)
	for _, text := range after {
		c, err := parseCursor(text, now)
		since[text] = KeyChanges{Expired: err != nil}
		if err == nil && text != "" {
			texts, previous, snapshots = append(texts, text), append(previous, c), append(snapshots, c.snapshot.text)
			oldest = min(oldest, c.snapshot.xmin)
		}
	}
	var rows []struct {
		Cluster, Snapshot string
		Nth               int
		Hashes            string
		Lag               float64
	}
	// One statement, so that the changes and the next cursor come from one snapshot. The oldest transaction stands there as a
	// literal, which has the planner see that few rows are meant.
	err = s.db.NewRaw(`SELECT cluster, snapshot::text, coalesce(nth, 0) AS nth, coalesce(hashes, '') AS hashes, coalesce(lag, 0) AS lag
		FROM (SELECT `+clusterIdentity+` AS cluster, pg_current_snapshot() AS snapshot) AS present LEFT JOIN (
			SELECT nth, string_agg(DISTINCT encode(hash, 'hex'), ',') AS hashes, extract(epoch FROM clock_timestamp() - min(changed_at)) AS lag
			FROM key_changes JOIN unnest(?::pg_snapshot[]) WITH ORDINALITY AS reader (seen, nth) ON NOT pg_visible_in_snapshot(xid, seen)
			WHERE xid >= ?::xid8 GROUP BY nth
		) AS changes ON true`, pgdialect.Array(snapshots), strconv.FormatUint(oldest, 10)).Scan(ctx, &rows)
	if err != nil {
		return nil, "", fmt.Errorf("read key changes: %w", err)
	}
	current := cursor{cluster: rows[0].Cluster, takenAt: now}
	if current.snapshot, err = parseSnapshot(rows[0].Snapshot); err != nil {
		return nil, "", fmt.Errorf("read key changes: %q: %w", rows[0].Snapshot, err)
	}
	for _, row := range rows {
		if row.Nth > 0 {
			since[texts[row.Nth-1]] = KeyChanges{Hashes: strings.Split(row.Hashes, ",")}
			s.metrics.keyChangeLag.Observe(row.Lag)
		}
	}
	for n, c := range previous {
		if c.cluster != current.cluster || c.snapshot.xmax > current.snapshot.xmax {
			since[texts[n]] = KeyChanges{Expired: true}
		}
	}
	return since, current.String(), nil
}
