package transfer

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// NewID returns a UUIDv7 for an intent that is created now, with the fraction of the millisecond in rand_a (RFC 9562 section 6.2,
// method 3), so that ids from one clock sort by time.
func NewID(now time.Time) (id uuid.UUID) {
	_, _ = rand.Read(id[:]) // never fails
	fraction := int64(now.Nanosecond()%int(time.Millisecond)) << 12 / int64(time.Millisecond)
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli()<<16|7<<12|fraction)) //nolint:gosec // a time after 1970
	id[8] = id[8]&0x3f | 0x80
	return id
}

// NewIDs returns ids for intents that are created now, ascending.
func NewIDs(now time.Time, count int) []uuid.UUID {
	ids := make([]uuid.UUID, count)
	for n := range ids {
		ids[n] = NewID(now)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// FirstID returns the lowest of the ids that NewID returns at a time or later.
func FirstID(at time.Time) (id uuid.UUID) {
	if ms := at.UnixMilli(); ms > 0 {
		binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	}
	return id
}

// idTime returns the time in a UUIDv7's first 48 bits, milliseconds since 1970 (RFC 9562 section 5.7).
func idTime(id uuid.UUID) time.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

// ParseHash parses an order id or a transaction hash: 0x and 64 hexadecimal digits.
func ParseHash(s string) (id [32]byte, ok bool) {
	digits, prefixed := strings.CutPrefix(s, "0x")
	decoded, err := hex.DecodeString(digits)
	if !prefixed || err != nil || len(decoded) != len(id) {
		return id, false
	}
	return [32]byte(decoded), true
}
