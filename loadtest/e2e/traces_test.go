package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/tracingtest"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

// A write and a list are followed from the client through gateway, core and Postgres in one trace, which the log lines of
// both services name.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	// The gateway decides, and core follows it.
	s, log := startStack(t, stack.Config{
		GatewayEnv: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on"},
		CoreEnv:    []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_off"},
	})
	tester := rawClient(t, s.Env().GatewayURL, s.Env().TestKey)
	// What the caller samples itself is its own affair.
	parent := []string{"Traceparent", "00-" + callersTrace + "-" + callersSpan + "-00", "Tracestate", "vendor=value"}
	expect[any](t, tester.do(http.MethodPost, "/v2/transfers", payment("1"), append(parent, "X-Request-Id", "the-post")...), 201)
	expect[any](t, tester.do(http.MethodGet, "/v2/transfers?reference=secret", nil, append(parent, "X-Request-Id", "the-list")...), 200)

	want := []string{
		"gateway POST /v2/transfers",
		"gateway POST /v2/transfers > gateway POST /v2/transfers",
		"gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers",
		"gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers > core INSERT transfers",
		"gateway GET /v2/transfers",
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
			asynctest.Eventually(t, fmt.Sprintf("%s writes the line of %s", service, request), func() bool {
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

// paths are the spans, each by the names from the first of the service's down to its own.
func paths(spans []tracingtest.Span) []string {
	byID := map[string]tracingtest.Span{}
	for _, s := range spans {
		byID[s.ID] = s
	}
	name := func(s tracingtest.Span) string { return strings.TrimPrefix(s.Service, "intents-") + " " + s.Name }
	var all []string
	for _, s := range spans {
		path := name(s)
		for parent, known := byID[s.Parent]; known; parent, known = byID[parent.Parent] {
			path = name(parent) + " > " + path
		}
		all = append(all, path)
	}
	return all
}

// lacking are those of want that are not among all.
func lacking(want, all []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(path string) bool { return slices.Contains(all, path) })
}

// checkSpans looks at what the tree does not show: where the trace came from, and that nothing leaks.
func checkSpans(t *testing.T, s *stack.Stack, spans []tracingtest.Span) {
	t.Helper()
	for _, span := range spans {
		if span.Service == "intents-gateway" && span.Kind == "server" && span.Parent != callersSpan || span.State != "vendor=value" || span.Failed {
			t.Errorf("%s is below %q, with the tracestate %q; failed %v", span.Name, span.Parent, span.State, span.Failed)
		}
	}
	text := tracingtest.Text(spans)
	for what, secret := range map[string]string{
		"the key's random part": s.Env().TestKey[len("sk_test_"):], "an account of the body": alice, "the query": "reference", "SQL": "WHERE",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the spans:\n%s", what, text)
		}
	}
}
