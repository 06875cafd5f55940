package wire

import "strings"

// MaxIdempotencyKeyLength is the maximum in characters.
const MaxIdempotencyKeyLength = 255

// IdempotencyKeyRule says what an Idempotency-Key header must be.
const IdempotencyKeyRule = "must be given once, with 1 to 255 printable ASCII characters"

// ParseIdempotencyKey parses the value of an Idempotency-Key header, bare or as a quoted string; ok is false if it breaks
// IdempotencyKeyRule.
func ParseIdempotencyKey(value string) (key string, ok bool) {
	key = strings.TrimSpace(value)
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if key == "" || len(key) > MaxIdempotencyKeyLength {
		return "", false
	}
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return "", false
		}
	}
	return key, true
}
