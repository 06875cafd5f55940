package feed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/google/uuid"

	"intents.internal/pkg/network"
)

// A cursor is a version, a position in the feed and a truncated hash over both and their owner, which detects another owner's
// cursor. It is not a secret: a client that forges one reads only its own events.
const (
	cursorVersion = 1
	positionEnd   = 1 + 8
	cursorLength  = positionEnd + 8
)

// ErrCursor is returned for text that is not a cursor of this account and environment.
var ErrCursor = errors.New("is not a cursor of this feed; take it from next")

// Owner is the owner of a feed.
type Owner struct {
	AccountID   uuid.UUID
	Environment network.Environment
}

// FormatCursor encodes the position after which an owner continues to read; it is opaque to clients and URL-safe.
func FormatCursor(owner Owner, position int64) string {
	return base64.RawURLEncoding.EncodeToString(owner.cursor(position))
}

// ParseCursor parses a cursor that FormatCursor encoded for the same owner, otherwise it returns ErrCursor.
func ParseCursor(owner Owner, text string) (position int64, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != cursorLength {
		return 0, ErrCursor
	}
	position = int64(binary.BigEndian.Uint64(raw[1:positionEnd])) //nolint:gosec // the next line rejects negative positions
	if position < 0 || !slices.Equal(raw, owner.cursor(position)) {
		return 0, ErrCursor
	}
	return position, nil
}

func (o Owner) cursor(position int64) []byte {
	raw := make([]byte, 0, cursorLength)
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, uint64(position)) //nolint:gosec // positions are not negative
	hash := sha256.New()
	_, _ = hash.Write(o.AccountID[:])
	_, _ = hash.Write([]byte(o.Environment))
	_, _ = hash.Write(raw)
	return append(raw, hash.Sum(nil)[:cursorLength-positionEnd]...)
}
