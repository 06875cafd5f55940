package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"intents.internal/pkg/telemetry"
)

func TestSecretIsRedacted(t *testing.T) {
	t.Parallel()
	secret := telemetry.Secret("open sesame")
	encoded, err := json.Marshal(struct{ S telemetry.Secret }{secret})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	telemetry.NewLogger(&log, "test").Info("started", "secret", secret, "config", struct{ S telemetry.Secret }{secret})
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret), string(encoded), log.String()} {
		if strings.Contains(shown, "sesame") || !strings.Contains(shown, "[redacted]") {
			t.Errorf("secret printed as %q", shown)
		}
	}
	if telemetry.Secret("").String() != "" {
		t.Error("a missing secret looks like one that is set")
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	handler := telemetry.Operations(telemetry.NewRegistry(),
		telemetry.Check{Name: "redis", Probe: func(context.Context) error { return nil }},
		telemetry.Check{Name: "postgres", Probe: func(context.Context) error { return down }},
		telemetry.Check{Name: "hung", Probe: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	)
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/livez":   {200, `{"status":"ok"}` + "\n"},
		"/readyz":  {503, `{"status":"unavailable","missing":{"hung":"context deadline exceeded","postgres":"connection refused"}}` + "\n"},
		"/metrics": {200, "go_goroutines"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if body := recorder.Body.String(); recorder.Code != want.status || !strings.Contains(body, want.body) {
				t.Errorf("%d %s, want %d %s", recorder.Code, body, want.status, want.body)
			}
		})
	}
}
