package postgres

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cursorLifetime is how long a cursor is valid.
const cursorLifetime = 24 * time.Hour

// cursor is a reader's position in the committed transactions: the complete snapshot of its last read. A row that was not visible
// in that snapshot is new, however late its transaction commits.
type cursor struct {
	// cluster is the clusterIdentity of the snapshot's transaction ids. After a restore, the promotion of a standby that had not
	// replayed everything, or a crash, Postgres reuses ids that the snapshot has seen.
	cluster string
	// snapshot is zero for a reader that has read nothing.
	snapshot snapshot
	takenAt  time.Time
}

// clusterIdentity is the system identifier of the database cluster, its timeline and its crashEpoch. Postgres starts a new
// timeline at the end of every recovery from a backup and at every promotion. A standby has no position of its own that
// identifies the timeline.
const clusterIdentity = `(SELECT to_hex(system_identifier) FROM pg_control_system()) || '.' ||
	CASE WHEN pg_is_in_recovery() THEN '00000000' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END || '.' || ` + crashEpoch

// crashEpoch changes with each crash recovery, because Postgres then resets its statistics and reuses the ids of transactions
// that were never written to the log. An operator who resets the statistics expires all cursors too.
const crashEpoch = `coalesce(to_hex((extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint), '0')`

// String is the form for URLs.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.takenAt.Unix(), 10) + "/" + c.cluster + "/" + c.snapshot.text))
}

var clusterIdentityForm = regexp.MustCompile(`^[0-9a-f]{1,16}\.[0-9A-F]{8}\.[0-9a-f]{1,16}$`)

// parseCursor parses the text of String. Empty text is the cursor of a reader that has read nothing. It returns ErrCursorExpired
// for text that is malformed or too old.
func parseCursor(text string, now time.Time) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return c, ErrCursorExpired
	}
	parts := strings.Split(string(decoded), "/")
	if len(parts) != 3 || !clusterIdentityForm.MatchString(parts[1]) {
		return c, ErrCursorExpired
	}
	seen, err := parseSnapshot(parts[2])
	if err != nil {
		return c, ErrCursorExpired
	}
	unix, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || now.Sub(time.Unix(unix, 0)) > cursorLifetime {
		return c, ErrCursorExpired
	}
	return cursor{cluster: parts[1], snapshot: seen, takenAt: time.Unix(unix, 0)}, nil
}
