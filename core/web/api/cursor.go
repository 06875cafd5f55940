package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
)

// A cursor is an intent's id and the time of its last change in microseconds, the precision of Postgres. In a list ordered by
// that time, byTime follows. Cursors of the previous release, which read such lists in the other direction, lack it.
const (
	cursorLength = 16 + 8
	byTime       = 1
)

var errCursor = errors.New("is not a cursor of this list; take it from the Link header")

// formatCursor encodes the end of a page; it is opaque to clients.
func formatCursor(last transfer.Summary, orderedByTime bool) string {
	raw := make([]byte, 0, cursorLength+1)
	raw = append(raw, last.ID[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(last.UpdatedAt.UnixMicro()))
	if orderedByTime {
		raw = append(raw, byTime)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// parseCursor leaves UpdatedAt zero in a cursor of a list that is not ordered by it.
func parseCursor(s string) (*postgres.KeysetCursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) < cursorLength || len(raw) > cursorLength+1 {
		return nil, errCursor
	}
	micro := int64(binary.BigEndian.Uint64(raw[16:])) //nolint:gosec // bounded on the next line
	if micro < 0 || micro > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		return nil, errCursor
	}
	position := &postgres.KeysetCursor{ID: uuid.UUID(raw[:16])}
	if len(raw) > cursorLength {
		if raw[cursorLength] != byTime {
			return nil, errCursor
		}
		position.UpdatedAt = time.UnixMicro(micro).UTC()
	}
	return position, nil
}
