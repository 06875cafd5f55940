package wire

import (
	"math/rand/v2"
	"net/http"
)

// RetryJitter is the most seconds that RetryAfter adds.
const RetryJitter = 2

// RetryAfter returns the seconds of the Retry-After of a response with this status, least if it is a 4xx: the token of a 429 is free at
// that time. A 5xx tells of an outage that all clients see at once, and gets up to RetryJitter more at random, so that they do not
// return at once.
func RetryAfter(status, least int) int {
	if status < http.StatusInternalServerError {
		return least
	}
	return least + rand.IntN(RetryJitter+1) //nolint:gosec // it spreads clients over time, and is no secret
}
