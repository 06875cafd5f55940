package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/metricstest"
)

func TestSecret_Redacted(t *testing.T) {
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
	present := telemetry.Check{Name: "chains", Probe: func(context.Context) error { return nil }}
	useful := telemetry.Check{Name: "redis", Probe: func(context.Context) error { return down }, Optional: true}
	absent := telemetry.Check{Name: "postgres", Probe: func(context.Context) error { return down }}
	hung := telemetry.Check{Name: "hung", Probe: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	for name, c := range map[string]struct {
		checks []telemetry.Check
		path   string
		status int
		body   string
	}{
		"alive":    {[]telemetry.Check{absent}, "/livez", 200, `{"status":"ok"}`},
		"ready":    {[]telemetry.Check{present}, "/readyz", 200, `{"status":"ok"}`},
		"degraded": {[]telemetry.Check{present, useful}, "/readyz", 200, `{"status":"ok","degraded":{"redis":"connection refused"}}`},
		"not ready": {
			[]telemetry.Check{present, useful, absent, hung},
			"/readyz", 503,
			`{"status":"unavailable","missing":{"hung":"context deadline exceeded","postgres":"connection refused"},"degraded":{"redis":"connection refused"}}`,
		},
		"checks":   {[]telemetry.Check{useful}, "/metrics", 200, `intents_check_passing{check="redis",optional="true"} 0`},
		"passing":  {[]telemetry.Check{present}, "/metrics", 200, `intents_check_passing{check="chains",optional="false"} 1`},
		"build":    {nil, "/metrics", 200, fmt.Sprintf(`intents_build_info{go_version=%q,revision="`, runtime.Version())},
		"runtime":  {nil, "/metrics", 200, "go_goroutines "},
		"process":  {nil, "/metrics", 200, "process_start_time_seconds "},
		"profiles": {nil, "/debug/pprof/goroutine?debug=1", 200, "goroutine profile:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := httptest.NewRecorder()
			telemetry.Operations(telemetry.NewRegistry(), c.checks...).
				ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil))
			body := recorder.Body.String()
			whole := strings.HasPrefix(c.body, "{") && body != c.body+"\n"
			if recorder.Code != c.status || whole || !strings.Contains(body, c.body) {
				t.Errorf("%d %s, want %d %s", recorder.Code, body, c.status, c.body)
			}
		})
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		telemetry.Pool("core", "redis", func() telemetry.PoolState {
			return telemetry.PoolState{Limit: 4, Open: 3, InUse: 2, Waits: 9, TimedOut: 1}
		}),
		telemetry.Pool("core", "other", func() telemetry.PoolState { return telemetry.PoolState{} }),
	)
	got := metricstest.Values(t, registry)
	maps.DeleteFunc(got, func(name string, _ float64) bool { return strings.HasSuffix(name, " other") })
	want := map[string]float64{
		"intents_core_pool_connections_limit redis": 4, "intents_core_pool_connections_open redis": 3, "intents_core_pool_connections_in_use redis": 2,
		"intents_core_pool_waits_total redis": 9, "intents_core_pool_timeouts_total redis": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
