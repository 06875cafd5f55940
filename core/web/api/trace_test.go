package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

const (
	gatewayTrace = "0af7651916cd43dd8448eb211c80319c"
	gatewaySpan  = "b7ad6b7169203331"
)

// ofGateway are the headers by which a gateway passes on a trace that it has decided to sample.
var ofGateway = []string{"Traceparent", "00-" + gatewayTrace + "-" + gatewaySpan + "-01", "X-Trace-Decided", "1", "X-Request-Id", "r1"}

// startTraced runs a service whose requests and queries are traced. The database it is on has the name that is returned.
func startTraced(t *testing.T, sampler string) (s *service, collector *tracingtest.Collector, database *pgx.ConnConfig) {
	t.Helper()
	collector = tracingtest.Start(t, nil)
	tracer, err := tracing.New(tracing.Config{Service: "core", Endpoint: collector.URL, Sampler: sampler},
		slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	url := pgtest.Database(t)
	if database, err = pgx.ParseConfig(url); err != nil {
		t.Fatal(err)
	}
	store, err := rooms.Open(url, postgres.Options{StatementTimeout: 2 * time.Minute, Traced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return startOn(t, store, func(c *webtest.Settings) { c.API.Tracer = tracer }), collector, database
}

// A write and a list, as they are shown: core's span below the gateway's, and each query below that, without any value.
func TestTraces(t *testing.T) {
	t.Parallel()
	s, collector, database := startTraced(t, "parentbased_always_off")
	ann := webtest.Keyed(uuid.New(), "test")
	var made struct{ ID string }
	response := s.Send(t, "POST", "/v2/transfers", webtest.TransferBody, append(ofGateway, ann...)...)
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &made); err != nil || response.StatusCode != 201 {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	s.Call(t, "GET", "/v2/transfers?reference=secret", "", append(ofGateway, ann...)...)
	s.Call(t, "POST", "/v2/transfers/"+made.ID+"/cancel", "", append(ofGateway, ann...)...)
	spans := collector.Await(t, gatewayTrace, "the spans of three requests", func(all []tracingtest.Span) bool {
		servers := 0
		for _, s := range all {
			if s.Kind == "server" {
				servers++
			}
		}
		return servers == 3
	})
	byID := map[string]tracingtest.Span{}
	for _, s := range spans {
		byID[s.ID] = s
	}
	var tree []string
	for _, s := range spans {
		path := s.Name
		for parent, ours := byID[s.Parent]; ours; parent, ours = byID[parent.Parent] {
			path = parent.Name + " > " + path
		}
		tree = append(tree, path)
		if s.Kind == "server" && s.Parent != gatewaySpan {
			t.Errorf("%s is below %s", s.Name, s.Parent)
		}
		port := any(int64(database.Port))
		if strings.HasPrefix(database.Host, "/") { // a socket
			port = nil
		}
		if s.Kind == "client" && (s.Attributes["db.system.name"] != "postgresql" || s.Attributes["db.namespace"] != database.Database ||
			s.Attributes["server.address"] != database.Host || s.Attributes["server.port"] != port) {
			t.Errorf("%s: %v", s.Name, s.Attributes)
		}
	}
	for _, want := range []string{
		"POST /v2/transfers > INSERT transfers",
		"GET /v2/transfers > SELECT transfers",
		"POST /v2/transfers/{id}/cancel > BEGIN",
		"POST /v2/transfers/{id}/cancel > SELECT transfers",
		"POST /v2/transfers/{id}/cancel > WITH", // the intent and its event
		"POST /v2/transfers/{id}/cancel > COMMIT",
	} {
		if !strings.Contains("\n"+strings.Join(tree, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("no span %s in:\n%s", want, strings.Join(tree, "\n"))
		}
	}
	own, _ := tracingtest.Find(spans, "intents-core", "POST /v2/transfers")
	want := map[string]any{
		"http.request.method": "POST", "http.route": "/v2/transfers", "http.response.status_code": int64(201), "url.scheme": "http",
		"intents.request_id": "r1", "intents.key_id": ann[3], "intents.environment": "test",
	}
	if diff := cmp.Diff(want, own.Attributes); diff != "" || own.Failed {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, secret := range []string{ann[1], webtest.Alice, webtest.Bob, "secret", "5'", "VALUES", "WHERE"} {
		if text := tracingtest.Text(spans); strings.Contains(text, secret) {
			t.Errorf("the spans hold %q:\n%s", secret, text)
		}
	}
	line := lineOf(t, s, "POST /v2/transfers")
	if line["trace_id"] != gatewayTrace || line["span_id"] != own.ID || line["request_id"] != "r1" {
		t.Errorf("the log line: %v", line)
	}
}

// lineOf is the log line of a request to this route.
func lineOf(t *testing.T, s *service, route string) map[string]any {
	t.Helper()
	for text := range strings.Lines(s.Log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if line["msg"] == "request" && line["route"] == route {
			return line
		}
	}
	return nil
}

// Core follows a gateway's decision, decides on what no gateway has decided, and believes nobody who is no gateway.
func TestTraces_SamplingDecision(t *testing.T) {
	t.Parallel()
	asked := ofGateway[:2]
	for sampler, c := range map[string]struct {
		header   []string
		recorded bool
	}{
		"parentbased_always_off": {asked, false},
		"parentbased_always_on":  {[]string{"Traceparent", "00-" + gatewayTrace + "-" + gatewaySpan + "-00"}, true},
	} {
		s, collector, _ := startTraced(t, sampler)
		s.Call(t, "GET", "/v2/tokens", "", c.header...)
		s.Call(t, "GET", "/v2/tokens", "", append([]string{"X-Gateway-Secret", "a guess"}, ofGateway...)...)
		s.Call(t, "GET", "/internal/key-filter", "")
		s.Call(t, "GET", "/v2/tokens", "", append(ofGateway, "X-Request-Id", "last")...)
		collector.Await(t, gatewayTrace, "the last request is recorded", func(all []tracingtest.Span) bool {
			for _, span := range all {
				if span.Attributes["intents.request_id"] == "last" {
					return true
				}
			}
			return false
		})
		want := 1
		if c.recorded {
			want = 2
		}
		servers := 0
		for _, span := range collector.Spans() {
			if span.Kind == "server" {
				servers++
			}
		}
		if servers != want {
			t.Errorf("%s: %d requests recorded, want %d:\n%s", sampler, servers, want, tracingtest.Text(collector.Spans()))
		}
	}
}

// Without tracing the trace that came is in the log all the same.
func TestTraces_IDInLog(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Call(t, "GET", "/v2/tokens", "", ofGateway...)
	line := lineOf(t, s, "GET /v2/tokens")
	if _, has := line["span_id"]; has || line["trace_id"] != gatewayTrace || line["request_id"] != "r1" {
		t.Errorf("the log line: %v", line)
	}
}

// Without an access log there are lines of requests that core failed alone.
func TestAccessLog_Off(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.API.AccessLog, c.API.Registry = nil, nil })
	s.Call(t, "GET", "/v2/transfers?limit=0", "", webtest.Keyed(uuid.New(), "test")...)
	s.Call(t, "GET", "/v2/transfers", "", webtest.Keyed(uuid.New(), "test")...)
	if line := lineOf(t, s, "GET /v2/transfers"); line != nil {
		t.Errorf("a line: %v", line)
	}
	s.Call(t, "GET", "/v2/tokens", "", "X-Request-Id", "r2") // which needs the registry
	line := lineOf(t, s, "GET /v2/tokens")
	if line["level"] != "ERROR" || line["request_id"] != "r2" || line["status"] != 500.0 {
		t.Errorf("the line of a failed request: %v", line)
	}
}

// A failed request is an error of the server's, a refused one is not.
func TestTraces_Failures(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	tracer, err := tracing.New(tracing.Config{Service: "core", Endpoint: collector.URL}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *webtest.Settings) { c.API.Registry, c.API.Tracer = nil, tracer })
	s.Call(t, "GET", "/v2/tokens", "", ofGateway...)
	s.Call(t, "GET", "/v2/transfers?limit=0", "", append(ofGateway, webtest.Keyed(uuid.New(), "test")...)...)
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]int{"GET /v2/tokens": 500, "GET /v2/transfers": 400} {
		span, found := tracingtest.Find(collector.Spans(), "intents-core", name)
		failed := status == 500
		if !found || span.Failed != failed || span.Attributes["http.response.status_code"] != int64(status) ||
			failed != (span.Attributes["error.type"] == strconv.Itoa(status)) {
			t.Errorf("%s: %+v", name, span)
		}
	}
}
