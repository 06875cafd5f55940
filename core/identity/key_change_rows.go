package identity

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/postgres"
)

// KeyChanges are the changes of keys since a cursor.
type KeyChanges struct {
	// Hashes are the hashes of the keys that changed, in hexadecimal, each once.
	Hashes []string
	// Expired means that the changes since the cursor are unknown, see ErrCursorExpired.
	Expired bool
}

// KeyChanges returns, for each of these cursors, the keys that have changed since, and the cursor for the next call. An empty
// cursor means now. No change is missed or returned twice, however late its transaction commits: a cursor is the complete
// snapshot of a read, and a change that was not visible in it is new. It is one statement for any number of cursors.
func (s *Store) KeyChanges(ctx context.Context, after []string, now time.Time) (since map[string]KeyChanges, next string, err error) {
	since = make(map[string]KeyChanges, len(after))
	var texts, snapshots []string
	var previous []postgres.Cursor
	oldest := uint64(math.MaxUint64)
	for _, text := range after {
		c, err := postgres.ParseCursor(text, now)
		since[text] = KeyChanges{Expired: err != nil}
		if err == nil && text != "" {
			texts, previous, snapshots = append(texts, text), append(previous, c), append(snapshots, c.Snapshot.Text)
			oldest = min(oldest, c.Snapshot.Xmin)
		}
	}
	var rows []struct {
		Cluster, Snapshot string
		Nth               int
		Hashes            string
		Lag               float64
	}
	// One statement, so that the changes and the next cursor come from one snapshot. The oldest transaction id is a literal, so
	// that the planner knows that few rows match.
	err = s.db.NewRaw(`SELECT cluster, snapshot::text, coalesce(nth, 0) AS nth, coalesce(hashes, '') AS hashes, coalesce(lag, 0) AS lag
		FROM (SELECT `+postgres.ClusterIdentity+` AS cluster, pg_current_snapshot() AS snapshot) AS present LEFT JOIN (
			SELECT nth, string_agg(DISTINCT encode(hash, 'hex'), ',') AS hashes, extract(epoch FROM clock_timestamp() - min(changed_at)) AS lag
			FROM key_changes JOIN unnest(?::pg_snapshot[]) WITH ORDINALITY AS reader (seen, nth) ON NOT pg_visible_in_snapshot(xid, seen)
			WHERE xid >= ?::xid8 GROUP BY nth
		) AS changes ON true`, pgdialect.Array(snapshots), strconv.FormatUint(oldest, 10)).Scan(ctx, &rows)
	if err != nil {
		return nil, "", fmt.Errorf("read key changes: %w", err)
	}
	current := postgres.Cursor{Cluster: rows[0].Cluster, TakenAt: now}
	if current.Snapshot, err = postgres.ParseSnapshot(rows[0].Snapshot); err != nil {
		return nil, "", fmt.Errorf("read key changes: %q: %w", rows[0].Snapshot, err)
	}
	for _, row := range rows {
		if row.Nth > 0 {
			since[texts[row.Nth-1]] = KeyChanges{Hashes: strings.Split(row.Hashes, ",")}
			s.keyChangeLag.Observe(row.Lag)
		}
	}
	for n, c := range previous {
		if c.Cluster != current.Cluster || c.Snapshot.Xmax > current.Snapshot.Xmax {
			since[texts[n]] = KeyChanges{Expired: true}
		}
	}
	return since, current.String(), nil
}
