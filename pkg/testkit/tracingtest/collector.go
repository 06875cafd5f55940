// Package tracingtest is an OpenTelemetry collector for tests, which receives spans by OTLP over HTTP.
package tracingtest

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"intents.internal/pkg/tracing"
)

// Span is a received span. Ids are hexadecimal; Parent is empty for a root span.
type Span struct {
	// Service is the resource's service.name.
	Service string
	Name    string
	// Kind is internal, server or client.
	Kind                string
	TraceID, ID, Parent string
	// State is the tracestate.
	State string
	// Attributes are strings and int64s.
	Attributes map[string]any
	Events     []Event
	Failed     bool
	Start, End time.Time
}

// Event is an event of a span.
type Event struct {
	Name string
	At   time.Time
}

// Collector receives spans.
type Collector struct {
	// URL is the endpoint to configure in services.
	URL string

	mu       sync.Mutex
	spans    []Span
	requests int
	headers  http.Header
	answer   http.HandlerFunc
}

// Start runs a collector until the test ends. If answer is not nil, it handles exports instead, until Answer replaces it.
func Start(tb testing.TB, answer http.HandlerFunc) *Collector {
	tb.Helper()
	c := &Collector{answer: answer}
	server := httptest.NewServer(c)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.URL = server.URL
	return c
}

// Tracer creates a tracer of this service that samples everything, and its collector.
func Tracer(tb testing.TB, service string) (*tracing.Tracer, *Collector) {
	tb.Helper()
	c := Start(tb, nil)
	tracer, err := tracing.New(tracing.Config{Service: service, Endpoint: c.URL, Sampler: "parentbased_always_on"},
		slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		tb.Fatal(err)
	}
	return tracer, c
}

// Answer replaces the handler; nil receives spans.
func (c *Collector) Answer(answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// ServeHTTP receives one export.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests++
	c.headers = r.Header.Clone()
	answer := c.answer
	c.mu.Unlock()
	body, err := io.ReadAll(r.Body) // otherwise a handler that hangs does not notice that the client has closed the connection
	if answer != nil {
		answer(w, r)
		return
	}
	var export collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprintf("no export of traces: %v", err), http.StatusBadRequest)
		return
	}
	c.take(&export)
	w.Header().Set("Content-Type", "application/x-protobuf") // the body is an empty ExportTraceServiceResponse
}

func (c *Collector) take(export *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range export.GetResourceSpans() {
		service, _ := values(of.GetResource().GetAttributes())["service.name"].(string)
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, read(service, span))
			}
		}
	}
}

func read(service string, span *traces.Span) Span {
	s := Span{
		Service: service, Name: span.GetName(),
		Kind:    strings.ToLower(strings.TrimPrefix(span.GetKind().String(), "SPAN_KIND_")),
		TraceID: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		State: span.GetTraceState(), Attributes: values(span.GetAttributes()),
		Failed: span.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR,
		Start:  at(span.GetStartTimeUnixNano()), End: at(span.GetEndTimeUnixNano()),
	}
	for _, event := range span.GetEvents() {
		s.Events = append(s.Events, Event{event.GetName(), at(event.GetTimeUnixNano())})
	}
	return s
}

func at(nanoseconds uint64) time.Time { return time.Unix(0, int64(nanoseconds)) } //nolint:gosec // it fits until 2262

func values(attributes []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, attribute := range attributes {
		switch value := attribute.GetValue().GetValue().(type) {
		case *common.AnyValue_IntValue:
			all[attribute.GetKey()] = value.IntValue
		default:
			all[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
	}
	return all
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Exports returns the number of exports, and the headers of the last one.
func (c *Collector) Exports() (count int, last http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests, c.headers
}

// Await waits up to 20 s until holds returns true for the spans of one trace, and returns them.
func (c *Collector) Await(tb testing.TB, traceID, what string, holds func([]Span) bool) []Span {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		all := Of(traceID, c.Spans())
		if holds(all) {
			return all
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within 20 s: %s; there are:\n%s", what, Text(all))
		}
		<-ticker.C
	}
}

// Of returns the spans of one trace.
func Of(traceID string, spans []Span) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.TraceID != traceID })
}

// Find returns the first span of this service with this name.
func Find(spans []Span, service, name string) (Span, bool) {
	for _, s := range spans {
		if s.Service == service && s.Name == name {
			return s, true
		}
	}
	return Span{}, false
}

// Text formats spans for the message of a failed test.
func Text(spans []Span) string {
	var text strings.Builder
	for _, s := range spans {
		fmt.Fprintf(&text, "%s %q (%s) %s below %q, %v\n", s.Service, s.Name, s.Kind, s.ID, s.Parent, s.Attributes)
	}
	return text.String()
}
