package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
)

// A cursor is an intent's id. In a list ordered by the time of the last change, that time follows in microseconds, the precision of
// Postgres.
const (
	idCursorLength   = 16
	timeCursorLength = idCursorLength + 8
)

var errCursor = errors.New("is not a cursor of this list; take it from the Link header")

// formatCursor encodes the end of a page; it is opaque to clients.
func formatCursor(last intents.KeysetCursor, orderedByTime bool) string {
	raw := append(make([]byte, 0, timeCursorLength), last.ID[:]...)
	if orderedByTime {
		raw = binary.BigEndian.AppendUint64(raw, uint64(last.UpdatedAt.UnixMicro()))
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// parseCursor leaves UpdatedAt zero in a cursor of a list that is not ordered by it.
func parseCursor(s string) (*intents.KeysetCursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != idCursorLength && len(raw) != timeCursorLength {
		return nil, errCursor
	}
	position := &intents.KeysetCursor{ID: uuid.UUID(raw[:idCursorLength])}
	if len(raw) == timeCursorLength {
		micro := int64(binary.BigEndian.Uint64(raw[idCursorLength:])) //nolint:gosec // bounded on the next line
		if micro < 0 || micro > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
			return nil, errCursor
		}
		position.UpdatedAt = time.UnixMicro(micro).UTC()
	}
	return position, nil
}
