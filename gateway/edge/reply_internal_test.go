package edge

import (
	"encoding/json"
	"testing"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/testkit/golden"
)

// The OpenAPI document takes the examples of the gateway's errors from the recorded bodies.
func TestReply_Bodies(t *testing.T) {
	t.Parallel()
	limited := newTooManyRequests(&limit.Decision{}, keyLimited, nil)
	replies := []*reply{
		noKey, refusedKey, scopeRefused[apikey.IntentsWrite], keysUnavailable, limiterUnavailable, keyPolls, transferTooLarge, notJSON, compressedBody,
		badPath, notFound, methodNotAllowed("GET, HEAD"), tooSlow, tooManyHeaders, badVersion, badExpectation, coreUnreachable, coreBroken, coreTimeout,
		brokenWrite.other, lateWrite.other, lateWrite.once, internalError, &limited, expiredToken, tokenRefused, originRefused,
	}
	bodies := make([]json.RawMessage, len(replies))
	for i, r := range replies {
		bodies[i] = r.body
	}
	golden.JSON(t, "testdata/errors.json", bodies)
}
