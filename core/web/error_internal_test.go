package web

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/web/api"
	"intents.internal/core/web/route"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/golden"
	"intents.internal/pkg/wire"
)

// The bodies of errors that apierror does not map; the OpenAPI document takes examples from them.
func TestHandler_ErrorBodies(t *testing.T) {
	t.Parallel()
	fallbacks := map[string]route.Fallback{}
	for _, r := range api.New(api.Config{}).Routes() {
		fallbacks[r.Pattern] = r.Fallback
	}
	router, err := route.New(route.Config{Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []any
	for _, c := range []struct {
		err error
		// of is the route whose fallback the error gets.
		of string
	}{
		{err: route.ErrNotFound},
		{err: errMethod},
		{err: errCrossOrigin},
		{err: route.TooLarge(wire.MaxTransferRequestBytes)},
		{err: route.ErrMediaType},
		{err: &account.InvalidError{Field: "name", Message: "must have 1 to 128 characters"}},
		{err: &identity.LimitedError{RetryAfter: 1162 * time.Millisecond}},
		{err: &intents.EnvironmentError{Chain: caip.EIP155Chain(1), Environment: network.Live, Key: network.Test}},
		{err: errors.New("any other")},
		{errors.New("any other"), "GET /v2/tokens"},
		{errors.New("any other"), "GET /v2/transfers"},
		{errors.New("any other"), "GET /v2/webhooks"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(""))
		router.Handler(route.Route{Endpoint: func(http.ResponseWriter, *http.Request) error { return c.err }, Fallback: fallbacks[c.of]}).ServeHTTP(w, r)
		bodies = append(bodies, json.RawMessage(w.Body.Bytes()))
	}
	golden.JSON(t, "api/testdata/errors.json", bodies)
}
