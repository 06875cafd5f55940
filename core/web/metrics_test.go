package web_test

import (
	"context"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/metricstest"
)

func TestMetrics_Requests(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	gate := pgtest.NewGate(t, pgtest.Database(t))
	s := webtest.StartOn(t, pgtest.Open(t, gate.URL), webtest.MeasuredBy(registry))
	ann := webtest.Keyed(uuid.New(), "test")
	s.Call(t, "GET", "/v2/transfers/"+uuid.NewString(), "", ann...)
	s.Call(t, "GET", "/v2/transfers/"+uuid.NewString(), "", ann...)
	s.Call(t, "GET", "/v2/tokens", "", ann...)
	s.Call(t, "GET", "/nowhere", "", ann...)
	s.Call(t, "GET", "/v2/tokens", "", "X-Gateway-Secret", "")

	gone, leave := context.WithCancel(t.Context())
	leave()
	request := httptest.NewRequestWithContext(gone, "GET", "/v2/transfers/"+uuid.NewString(), nil)
	request.Header.Set("X-Gateway-Secret", webtest.GatewaySecret)
	for i := 0; i < len(ann); i += 2 {
		request.Header.Set(ann[i], ann[i+1])
	}
	s.Handler.ServeHTTP(httptest.NewRecorder(), request)

	gate.Shut()
	s.Call(t, "GET", "/v2/transfers/"+uuid.NewString(), "", ann...)
	want := map[string]float64{
		"intents_core_requests_total GET /v2/transfers/{id} 404": 2, "intents_core_requests_total GET /v2/transfers/{id} gone": 1,
		"intents_core_requests_total GET /v2/transfers/{id} 503": 1, "intents_core_request_duration_seconds GET /v2/transfers/{id} count": 4,
		"intents_core_requests_total GET /v2/tokens 200": 1, "intents_core_request_duration_seconds GET /v2/tokens count": 1,
		"intents_core_requests_total / 404": 1, "intents_core_request_duration_seconds / count": 1,
		"intents_core_requests_total none 401": 1, "intents_core_request_duration_seconds none count": 1,
	}
	got := metricstest.Values(t, registry)
	maps.DeleteFunc(got, func(name string, n float64) bool { return n == 0 || strings.HasSuffix(name, " sum") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What nobody foresaw is counted as a defect, a mistake of the client is not.
func TestMetrics_Defects(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	s := webtest.Start(t, webtest.MeasuredBy(registry), func(c *webtest.Settings) { c.API.Registry = nil })
	s.Call(t, "GET", "/v2/tokens", "")
	s.Call(t, "GET", "/v2/chains", "")
	s.Call(t, "GET", "/v2/transfers?limit=0", "", webtest.Keyed(uuid.New(), "test")...)
	if got := metricstest.Values(t, registry)["intents_core_defects_total"]; got != 2 {
		t.Errorf("%g defects counted, want 2; log:\n%s", got, strings.TrimSpace(s.Log.String()))
	}
}
