package api

import (
	"errors"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/golden"
	"intents.internal/pkg/wire"
)

// The bodies of errors that only this package returns; the OpenAPI document takes examples from them.
func TestToAPIError_Bodies(t *testing.T) {
	t.Parallel()
	var bodies []any
	for _, c := range []struct {
		err      error
		fallback fallbackError
	}{
		{errNoRoute, fallbackError{}},
		{errMethod, fallbackError{}},
		{errCrossOrigin, fallbackError{}},
		{tooLarge(wire.MaxTransferRequestBytes), fallbackError{}},
		{errMediaType, fallbackError{}},
		{&account.InvalidError{Field: "name", Message: "must have 1 to 128 characters"}, fallbackError{}},
		{&identity.LimitedError{RetryAfter: 1162 * time.Millisecond}, fallbackError{}},
		{&intents.EnvironmentError{Chain: caip.EIP155Chain(1), Environment: network.Live, Key: network.Test}, fallbackError{}},
		{errors.New("any other"), fallbackError{}},
		{errors.New("any other"), tokenFallback},
		{errors.New("any other"), transferFallback},
		{errors.New("any other"), webhookFallback},
	} {
		bodies = append(bodies, toAPIError(c.err, c.fallback).body)
	}
	golden.JSON(t, "testdata/errors.json", bodies)
}
