package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/tracingtest"
)

// A write is followed from the client through gateway, core and Postgres in one trace, as the settings of OpenTelemetry say.
func TestTraces(t *testing.T) {
	journey(t)
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	// The gateway decides, and core follows it.
	s, _ := startStack(t, stack.Config{
		GatewayEnv: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on"},
		CoreEnv:    []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_off"},
	})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	// What the caller samples itself is its own affair.
	parent := []string{"Traceparent", "00-" + trace + "-00f067aa0ba902b7-00"}
	system.Expect[any](t, rawClient(t, s.Env().GatewayURL, s.Env().TestKey).Do(http.MethodPost, "/v2/transfers", payment("1"), parent...), 201)
	const want = "gateway POST /v2/transfers > gateway POST /v2/transfers > core POST /v2/transfers > core INSERT transfers"
	collector.Await(t, trace, want, func(all []tracingtest.Span) bool { return slices.Contains(paths(all), want) })
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
