package postgres

import (
	"errors"
	"strconv"
	"strings"
)

// Snapshot is the set of transactions that were visible when it was taken, in the text form of Postgres's pg_snapshot.
type Snapshot struct {
	Text string
	// xmin is the oldest transaction that had not ended, and xmax the first that had not begun.
	Xmin, Xmax uint64
}

var errNoSnapshot = errors.New("not a pg_snapshot")

// ParseSnapshot parses xmin:xmax:xip,xip… and rejects what Postgres would reject, so that one reader's cursor does not break a
// statement that other readers share.
func ParseSnapshot(text string) (s Snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Snapshot{}, errNoSnapshot
	}
	xmin, ok := transactionID(parts[0])
	xmax, also := transactionID(parts[1])
	if !ok || !also || xmax < xmin {
		return Snapshot{}, errNoSnapshot
	}
	if parts[2] != "" { // those in progress, in ascending order
		last := xmin
		for id := range strings.SplitSeq(parts[2], ",") {
			xid, ok := transactionID(id)
			if !ok || xid < last || xid >= xmax {
				return Snapshot{}, errNoSnapshot
			}
			last = xid
		}
	}
	return Snapshot{Text: text, Xmin: xmin, Xmax: xmax}, nil
}

// transactionID parses an xid8. Rows store its lower half, in which 0 means no transaction.
func transactionID(text string) (xid uint64, ok bool) {
	xid, err := strconv.ParseUint(text, 10, 64)
	return xid, err == nil && uint32(xid) != 0 //nolint:gosec // only the lower half is used
}
