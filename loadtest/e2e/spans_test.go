package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/tracingtest"
)

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

// checkSpans looks at what the tree does not show: where the trace came from, what is shared, and that nothing leaks.
func checkSpans(t *testing.T, s *stack.Stack, spans []tracingtest.Span) {
	t.Helper()
	byName := map[string]tracingtest.Span{}
	for _, span := range spans {
		byName[span.Name] = span
		if span.Service == "intents-gateway" && span.Kind == "server" && span.Parent != callersSpan || span.State != "vendor=value" {
			t.Errorf("%s is below %q, with the tracestate %q", span.Name, span.Parent, span.State)
		}
		if span.Failed {
			t.Errorf("%s failed: %v", span.Name, span.Attributes)
		}
	}
	for shared, by := range map[string]string{"EVALSHA": "limit", "INSERT transfers": "write transfer"} {
		links := byName[by].Links
		if len(links) != 1 || links[0].TraceID != callersTrace {
			t.Errorf("%s links to %v, want the %s that it shares", by, links, shared)
		}
	}
	for name, system := range map[string]string{"EVALSHA": "redis", "INSERT transfers": "postgresql", "SELECT transfers": "postgresql"} {
		if got := byName[name].Attributes["db.system.name"]; got != system {
			t.Errorf("%s is of %v, want %s", name, got, system)
		}
	}
	text := tracingtest.Text(spans)
	for what, secret := range map[string]string{
		"the key": s.Env().TestKey, "the key's random part": s.Env().TestKey[len("sk_test_"):], "an account of the body": alice,
		"the query": "reference", "SQL": "WHERE",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the spans:\n%s", what, text)
		}
	}
}

// failedSpans is how many spans a service could not export.
func failedSpans(t *testing.T, s *stack.Stack, service string) float64 {
	t.Helper()
	return spansCounted(t, s, service, "failed")
}

func spansCounted(t *testing.T, s *stack.Stack, service, outcome string) float64 {
	t.Helper()
	from := map[string]string{"gateway": s.Env().GatewayMetricsURL, "core": s.Env().CoreMetricsURL}[service]
	name := fmt.Sprintf("intents_%s_spans_total{outcome=%q} ", service, outcome)
	for line := range strings.Lines(get(t, from, http.StatusOK)) {
		if value, found := strings.CutPrefix(line, name); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s does not export %s", service, name)
	return 0
}
