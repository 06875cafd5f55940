package postgres

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// CursorLifetime is how long a cursor is valid.
const CursorLifetime = 24 * time.Hour

// Cursor is a reader's position in the committed transactions: the complete snapshot of its last read. A row that was not visible
// in that snapshot is new, however late its transaction commits.
type Cursor struct {
	// cluster is the clusterIdentity of the snapshot's transaction ids. After a restore, the promotion of a standby that had not
	// replayed everything, or a crash, Postgres reuses ids that the snapshot has seen.
	Cluster string
	// snapshot is zero for a reader that has read nothing.
	Snapshot Snapshot
	TakenAt  time.Time
}

// ClusterIdentity is the system identifier of the database cluster, its timeline and its crashEpoch. Postgres starts a new
// timeline at the end of every recovery from a backup and at every promotion. A standby has no position of its own that
// identifies the timeline.
const ClusterIdentity = `(SELECT to_hex(system_identifier) FROM pg_control_system()) || '.' ||
	CASE WHEN pg_is_in_recovery() THEN '00000000' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END || '.' || ` + crashEpoch

// crashEpoch changes with each crash recovery, because Postgres then resets its statistics and reuses the ids of transactions
// that were never written to the log. An operator who resets the statistics expires all cursors too.
const crashEpoch = `coalesce(to_hex((extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint), '0')`

// String is the form for URLs.
func (c Cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.TakenAt.Unix(), 10) + "/" + c.Cluster + "/" + c.Snapshot.Text))
}

var clusterIdentityForm = regexp.MustCompile(`^[0-9a-f]{1,16}\.[0-9A-F]{8}\.[0-9a-f]{1,16}$`)

// ParseCursor parses the text of String. Empty text is the cursor of a reader that has read nothing. It returns ErrCursorExpired
// for text that is malformed or too old.
func ParseCursor(text string, now time.Time) (c Cursor, err error) {
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
	seen, err := ParseSnapshot(parts[2])
	if err != nil {
		return c, ErrCursorExpired
	}
	unix, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || now.Sub(time.Unix(unix, 0)) > CursorLifetime {
		return c, ErrCursorExpired
	}
	return Cursor{Cluster: parts[1], Snapshot: seen, TakenAt: time.Unix(unix, 0)}, nil
}

// ErrCursorExpired means that a cursor is malformed, older than cursorLifetime or of another clusterIdentity, as after a crash of
// the server, a restore from a backup, or the promotion of a standby that had not replayed everything.
var ErrCursorExpired = errors.New("the cursor is too old or not one of ours")
