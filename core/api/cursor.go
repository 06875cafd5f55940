package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

// cursorLength is that of a decoded cursor: the id and the time of the last change in microseconds, as Postgres keeps it.
const cursorLength = 16 + 8

var errCursor = errors.New("is not a cursor of this list; take it from the Link header")

// formatCursor writes where a page ended. Clients take it as it is.
func formatCursor(last transfer.Summary) string {
	raw := make([]byte, 0, cursorLength)
	raw = append(raw, last.ID[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(last.UpdatedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(s string) (*postgres.Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != cursorLength {
		return nil, errCursor
	}
	micro := int64(binary.BigEndian.Uint64(raw[16:])) //nolint:gosec // bounded on the next line
	if micro < 0 || micro > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		return nil, errCursor
	}
	return &postgres.Position{ID: uuid.UUID(raw[:16]), UpdatedAt: time.UnixMicro(micro).UTC()}, nil
}
