package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/tracingtest"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

// startTraced runs a stack of its own with these further settings. Its log is all that its services wrote.
func startTraced(t *testing.T, gateway, core []string) (s *stack.Stack, log *asynctest.Buffer) {
	t.Helper()
	log = &asynctest.Buffer{}
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Ephemeral: true, Log: log,
		GatewayEnv: gateway, CoreEnv: core,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	return s, log
}

func clientOf(t *testing.T, s *stack.Stack, key string) *client {
	t.Helper()
	return &client{t: t, base: s.Env().GatewayURL, key: key, http: &http.Client{Timeout: 20 * time.Second}}
}

// A write and a list are followed from the client through gateway, Redis, core and Postgres in one trace, which the log lines of
// both services name. Then the collector fails, in every way it can, and clients notice nothing.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	// The gateway decides, and core follows it.
	s, log := startTraced(t,
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on"},
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_off"})
	tester := clientOf(t, s, s.Env().TestKey)
	// What the caller samples itself is its own affair.
	parent := []string{"Traceparent", "00-" + callersTrace + "-" + callersSpan + "-00", "Tracestate", "vendor=value"}
	transfer := body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")
	expect[record](t, tester.do(http.MethodPost, "/v2/transfers", transfer, append(parent, "X-Request-Id", "the-post")...), 201)
	expect[[]record](t, tester.do(http.MethodGet, "/v2/transfers?reference=secret", nil, append(parent, "X-Request-Id", "the-list")...), 200)

	want := []string{
		"gateway POST /v2/transfers",
		"gateway POST /v2/transfers > gateway key look-up",
		"gateway POST /v2/transfers > gateway key look-up > gateway POST /internal/keys/verify",
		"gateway POST /v2/transfers > gateway key look-up > gateway POST /internal/keys/verify > core POST /internal/keys/verify",
		"gateway POST /v2/transfers > gateway key look-up > gateway POST /internal/keys/verify > core POST /internal/keys/verify > core SELECT api_keys",
		"gateway POST /v2/transfers > gateway limit",
		"gateway POST /v2/transfers > gateway limit > gateway EVALSHA",
		"gateway POST /v2/transfers > gateway POST /v2/transfers",
		"gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers",
		"gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers > core write transfer",
		"gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers > core write transfer > core INSERT transfers",
		"gateway GET /v2/transfers",
		"gateway GET /v2/transfers > gateway limit",
		"gateway GET /v2/transfers > gateway limit > gateway EVALSHA",
		"gateway GET /v2/transfers > gateway GET /v2/transfers",
		"gateway GET /v2/transfers > gateway GET /v2/transfers > core GET /v2/transfers",
		"gateway GET /v2/transfers > gateway GET /v2/transfers > core GET /v2/transfers > core SELECT transfers",
	}
	var missing []string
	spans := collector.Await(t, callersTrace, "every step of a write and a list is shown", func(all []tracingtest.Span) bool {
		missing = lacking(want, paths(all))
		return len(missing) == 0 || len(all) > 4*len(want)
	})
	if len(missing) > 0 {
		t.Errorf("no spans\n%s", strings.Join(missing, "\n"))
	}
	checkSpans(t, s, spans)
	checkTraceLog(t, log, spans)

	for _, sick := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		collector.Answer(sick.answer)
		failed := map[string]float64{"gateway": failedSpans(t, s, "gateway"), "core": failedSpans(t, s, "core")}
		for n := range 15 { // with what came before, within the key's limit
			began := time.Now()
			expect[[]record](t, tester.do(http.MethodGet, "/v2/transfers?limit=1", nil, parent...), 200)
			if elapsed := time.Since(began); elapsed > 2*time.Second {
				t.Errorf("while the collector %s, request %d took %s", sick.name, n, elapsed)
			}
		}
		for service, before := range failed {
			soon(t, fmt.Sprintf("the spans of %s count as failed while the collector %s", service, sick.name), func() bool { return failedSpans(t, s, service) > before })
		}
	}
	for _, service := range []string{"gateway", "core"} {
		if lines := strings.Count(log.String(), `traces cannot be exported, requests are served on","service":"`+service); lines < 1 || lines > 3 {
			t.Errorf("%d lines of %s about the collector", lines, service)
		}
	}
}

// checkTraceLog finds the line of each request in both services, with the ids of the request's span there.
func checkTraceLog(t *testing.T, log *asynctest.Buffer, spans []tracingtest.Span) {
	t.Helper()
	for _, request := range []string{"the-post", "the-list"} {
		for _, service := range []string{"gateway", "core"} {
			own := slices.IndexFunc(spans, func(s tracingtest.Span) bool {
				return s.Service == "intents-"+service && s.Kind == "server" && s.Attributes["intents.request_id"] == request
			})
			if own < 0 {
				t.Errorf("%s has no span of %s", service, request)
				continue
			}
			var line map[string]any
			soon(t, fmt.Sprintf("%s writes the line of %s", service, request), func() bool {
				line = logged(log, service, request)
				return line != nil
			})
			if line["trace_id"] != callersTrace || line["span_id"] != spans[own].ID {
				t.Errorf("%s: the line of %s has the ids %v and %v", service, request, line["trace_id"], line["span_id"])
			}
		}
	}
}

// logged is the line that a service wrote about a request, nil if it has not.
func logged(log *asynctest.Buffer, service, request string) map[string]any {
	for text := range strings.Lines(log.String()) {
		_, object, found := strings.Cut(text, "{")
		var line map[string]any
		if found && json.Unmarshal([]byte("{"+object), &line) == nil && line["service"] == service && line["request_id"] == request {
			return line
		}
	}
	return nil
}

// soon is eventually for what only holds or does not.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually(t, func() error {
		if !holds() {
			return errors.New("not within a minute: " + what)
		}
		return nil
	})
}

// By default a client's sampled flag is not believed: about one trace in ten is recorded, whatever clients say, and core
// follows.
func TestTraces_ClientSampledFlag(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	endpoint := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}
	s, _ := startTraced(t, endpoint, endpoint)
	const requests = 300
	anyone := clientOf(t, s, "")
	for n := range requests {
		expect[any](t, anyone.do(http.MethodGet, "/auth/get-session", nil,
			"Traceparent", fmt.Sprintf("00-%024x00000000-%016x-01", n+1, n+1)), 200)
	}
	counts := func() (ofGateway, ofCore map[string]bool) {
		ofGateway, ofCore = map[string]bool{}, map[string]bool{}
		for _, span := range collector.Spans() {
			switch {
			case span.Kind != "server":
			case span.Service == "intents-gateway" && span.Attributes["http.route"] == "/auth/*":
				ofGateway[span.TraceID] = true
			case span.Attributes["http.route"] == "/auth/get-session":
				ofCore[span.TraceID] = true
			}
		}
		return ofGateway, ofCore
	}
	// A core that decided for itself would share one in ten of the gateway's traces. Spans are best effort: one may get lost.
	soon(t, "core has recorded what the gateway has, and nothing else", func() bool {
		ofGateway, ofCore := counts()
		for trace := range ofCore {
			if !ofGateway[trace] {
				return false
			}
		}
		return len(ofGateway) > 0 && len(ofCore) >= len(ofGateway)*3/4
	})
	if ofGateway, _ := counts(); len(ofGateway) > requests/3 {
		t.Errorf("%d of %d traces are recorded, want one in ten", len(ofGateway), requests)
	}
}

// Without an endpoint nothing is recorded, and a client's trace goes through to core, which names it in its log.
func TestTraces_OffByDefault(t *testing.T) {
	t.Parallel()
	s, log := startTraced(t, nil, nil)
	anyone := clientOf(t, s, "")
	expect[any](t, anyone.do(http.MethodGet, "/auth/get-session", nil,
		"Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01", "X-Request-Id", "untraced"), 200)
	for _, service := range []string{"gateway", "core"} {
		for _, outcome := range []string{"exported", "failed", "dropped"} {
			if n := spansCounted(t, s, service, outcome); n != 0 {
				t.Errorf("%s: %g spans %s", service, n, outcome)
			}
		}
		var line map[string]any
		soon(t, service+" writes the line", func() bool {
			line = logged(log, service, "untraced")
			return line != nil
		})
		if _, has := line["span_id"]; has || line["trace_id"] != callersTrace {
			t.Errorf("%s: %v", service, line)
		}
	}
}
