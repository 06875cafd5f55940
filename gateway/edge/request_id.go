package edge

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// requestID returns the client's request id if it is safe to log, else a new one, which it writes to text.
func requestID(h *fasthttp.RequestHeader, now time.Time, text *[36]byte) []byte {
	if own := h.Peek(wire.HeaderRequestID); isRequestID(own) {
		return own
	}
	writeUUIDv7(text, now)
	return text[:]
}

func isRequestID(b []byte) bool {
	return len(b) >= 1 && len(b) <= 64 && all(b, requestIDByte)
}

// writeUUIDv7 writes a UUID of RFC 9562 section 5.7: milliseconds, then 74 random bits. A request id is not a secret, so the
// generator needs no system call.
func writeUUIDv7(text *[36]byte, now time.Time) {
	const version, variant = 7 << 12, 2 << 62
	var id [16]byte
	first, second := rand.Uint64(), rand.Uint64() //nolint:gosec // not a secret
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16|version|first&0xfff)
	binary.BigEndian.PutUint64(id[8:], variant|second>>2)
	at := 0
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		text[at], text[at+1] = hexDigits[b>>4], hexDigits[b&0xf]
		at += 2
	}
}

const hexDigits = "0123456789abcdef"
