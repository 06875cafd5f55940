package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	sampled = "00-" + traceID + "-" + spanID + "-01"
)

// extract is the trace context of these headers.
func extract(parent, state string) context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// inject is the traceparent that passes a span on.
func inject(span trace.Span) string {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), headers)
	return headers["traceparent"]
}

// bench is what a tracer shows of itself.
type bench struct {
	registry *prometheus.Registry
	log      asynctest.Buffer
}

func (b *bench) count(t *testing.T, outcome string) float64 {
	t.Helper()
	return metricstest.Values(t, b.registry)["intents_test_spans_total "+outcome]
}

// newTracer takes everything where the config does not say otherwise, and ends with the test.
func newTracer(t *testing.T, c tracing.Config, b *bench) *tracing.Tracer {
	t.Helper()
	if b == nil {
		b = &bench{}
	}
	b.registry = prometheus.NewRegistry()
	c.Service = "test"
	if c.Sampler == "" {
		c.Sampler = "parentbased_always_on"
	}
	tracer, err := tracing.New(c, slog.New(slog.NewTextHandler(&b.log, nil)), b.registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tracer
}

//nolint:paralleltest // it counts allocations
func TestTracer_Off(t *testing.T) {
	if tracer := newTracer(t, tracing.Config{}, nil); tracer != nil {
		t.Fatal("there is a tracer")
	}
	var off *tracing.Tracer
	for _, ctx := range []context.Context{t.Context(), extract(sampled, "")} {
		allocations := testing.AllocsPerRun(100, func() {
			_, span := off.Start(ctx, "test", true, time.Time{})
			child := tracing.StartClient(span, "child")
			call := tracing.StartRequest(child, "GET", "/v2/tokens")
			tracing.SetResponse(call, 500)
			tracing.Fail(call, "x")
			tracing.End(child, nil, "x")
			if child.IsRecording() || !child.SpanContext().Equal(trace.SpanContextFromContext(ctx)) {
				t.Error("a span records, or is not the client's")
			}
		})
		if allocations != 0 {
			t.Errorf("%g allocations, want none", allocations)
		}
	}
}

// Every part of a span arrives at a collector as it was told.
func TestTracer_Export(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	b := &bench{}
	tracer := newTracer(t, tracing.Config{
		Endpoint: collector.URL, Headers: "authorization=Bearer%20abc", ServiceName: "the name",
		ResourceAttributes: "service.name=another,deployment.environment.name=test", TrustClients: true,
	}, b)
	began := time.Now().Add(-time.Second)
	_, server := tracer.Start(extract(sampled, "a=b"), "first", false, began)
	insert := tracing.StartClient(server, "INSERT transfers", attribute.String("db.operation.name", "INSERT"))
	insert.AddEvent(tracing.ResponseStarted)
	tracing.End(insert, errors.New("secret"), "23505")
	wait := tracing.StartClient(server, "wait")
	call := tracing.StartRequest(wait, "GET", "/v2/transfers/{id}")
	tracing.SetAddress(call, "[::1]:8080")
	tracing.SetResponse(call, 404)
	call.End()
	tracing.End(wait, context.DeadlineExceeded, "x")
	tracing.SetRequest(server, tracing.Request{
		Method: "GET", Scheme: "http", ID: "r1", KeyID: "k1", Environment: "test", Route: "/v2/transfers/{id}", Status: 200, Outcome: "ok",
	})
	server.End()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := func(s trace.Span) string { return s.SpanContext().SpanID().String() }
	byName := map[string]tracingtest.Span{}
	for _, s := range collector.Spans() {
		if name := s.Name; name == "GET /v2/transfers/{id}" && s.Kind == "client" {
			byName[name+" of a client"] = s
		} else {
			byName[name] = s
		}
	}
	want := map[string]tracingtest.Span{
		"GET /v2/transfers/{id}": {
			Kind: "server", TraceID: traceID, ID: id(server), Parent: spanID, State: "a=b",
			Attributes: map[string]any{
				"http.request.method": "GET", "http.route": "/v2/transfers/{id}", "http.response.status_code": int64(200), "url.scheme": "http",
				"intents.request_id": "r1", "intents.key_id": "k1", "intents.environment": "test", "intents.outcome": "ok",
			},
		},
		"INSERT transfers": {
			Kind: "client", TraceID: traceID, ID: id(insert), Parent: id(server), State: "a=b", Failed: true,
			Attributes: map[string]any{"db.operation.name": "INSERT", "error.type": "23505"},
			Events:     []tracingtest.Event{{Name: tracing.ResponseStarted}},
		},
		"wait": {
			Kind: "client", TraceID: traceID, ID: id(wait), Parent: id(server), State: "a=b", Failed: true,
			Attributes: map[string]any{"error.type": "timeout"},
		},
		"GET /v2/transfers/{id} of a client": {
			Kind: "client", TraceID: traceID, ID: id(call), Parent: id(wait), State: "a=b", Failed: true,
			Attributes: map[string]any{
				"http.request.method": "GET", "url.template": "/v2/transfers/{id}", "http.response.status_code": int64(404), "error.type": "404",
				"server.address": "::1", "server.port": int64(8080),
			},
		},
	}
	for name, s := range byName {
		if s.Service != "the name" || s.End.Before(s.Start) {
			t.Errorf("%s: of %q, from %s to %s", name, s.Service, s.Start, s.End)
		}
		if name == "GET /v2/transfers/{id}" && !s.Start.Equal(began.Round(0)) {
			t.Errorf("it began at %s, not %s", s.Start, began)
		}
		w := want[name]
		w.Service, w.Name, w.Start, w.End = s.Service, s.Name, s.Start, s.End
		for n := range min(len(w.Events), len(s.Events)) {
			if w.Events[n].At = s.Events[n].At; w.Events[n].At.Before(s.Start) || w.Events[n].At.After(s.End) {
				t.Errorf("%s: %+v is outside of %s to %s", name, w.Events[n], s.Start, s.End)
			}
		}
		want[name] = w
	}
	if diff := cmp.Diff(want, byName); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, headers := collector.Exports(); headers.Get("Authorization") != "Bearer abc" {
		t.Errorf("headers %v", headers)
	}
	if exported := b.count(t, "exported"); exported != 4 {
		t.Errorf("%g spans counted as exported", exported)
	}
	if problems, err := testutil.GatherAndLint(b.registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// Each sampler takes what its name says, and a client can ask for nothing: neither by the flag, nor by an id that the usual sampler always takes.
func TestTracer_Samplers(t *testing.T) {
	t.Parallel()
	const requests = 1000
	cheap := "00-0af7651916cd43dd0000000000000001-" + spanID
	for name, c := range map[string]struct {
		config      tracing.Config
		parent      string
		decided     bool
		least, most int
	}{
		"the flag":                      {tracing.Config{Sampler: "parentbased_traceidratio", Ratio: 0.1}, cheap + "-01", false, 30, 250},
		"no flag":                       {tracing.Config{Sampler: "parentbased_traceidratio", Ratio: 0.1}, cheap + "-00", false, 30, 250},
		"the flag, and never":           {tracing.Config{Sampler: "parentbased_always_off"}, cheap + "-01", false, 0, 0},
		"no flag, and always":           {tracing.Config{Sampler: "parentbased_always_on"}, cheap + "-00", false, requests, requests},
		"the flag of a trusted client":  {tracing.Config{Sampler: "parentbased_always_off", TrustClients: true}, cheap + "-01", false, requests, requests},
		"a trusted client's other flag": {tracing.Config{Sampler: "parentbased_always_on", TrustClients: true}, cheap + "-00", false, 0, 0},
		"the flag of a gateway":         {tracing.Config{Sampler: "parentbased_always_off"}, cheap + "-01", true, requests, requests},
		"a gateway's other flag":        {tracing.Config{Sampler: "parentbased_always_on"}, cheap + "-00", true, 0, 0},
		"nothing":                       {tracing.Config{Sampler: "parentbased_traceidratio", Ratio: 0.1}, "", false, 30, 250},
		"alone, always":                 {tracing.Config{Sampler: "always_on"}, cheap + "-00", true, requests, requests},
		"alone, never":                  {tracing.Config{Sampler: "always_off", TrustClients: true}, cheap + "-01", true, 0, 0},
		"alone, a share by the id":      {tracing.Config{Sampler: "traceidratio", Ratio: 0.1}, cheap + "-00", true, requests, requests},
		"alone, a share of clients":     {tracing.Config{Sampler: "traceidratio", Ratio: 0.1}, cheap + "-01", false, 30, 250},
		"alone, a share of nothing":     {tracing.Config{Sampler: "traceidratio", Ratio: 0.1}, "", false, 30, 250},
	} {
		c.config.Endpoint = "http://127.0.0.1:1"
		tracer := newTracer(t, c.config, nil)
		taken := 0
		for range requests {
			_, span := tracer.Start(extract(c.parent, "a=b"), "test", c.decided, time.Time{})
			traceID := span.SpanContext().TraceID()
			if c.parent != "" && (traceID.String() != c.parent[3:35] || span.SpanContext().TraceState().String() != "a=b") {
				t.Fatalf("%s: the trace is %v", name, span.SpanContext())
			}
			flags := inject(span)[53:]
			if span.IsRecording() {
				taken++
			}
			if span.IsRecording() != (flags == "01" || flags == "03") {
				t.Fatalf("%s: the flags passed on are %s", name, flags)
			}
			if child := tracing.StartClient(span, "child"); child.IsRecording() != span.IsRecording() || child.SpanContext().TraceID() != traceID {
				t.Fatalf("%s: the child is of another mind", name)
			}
		}
		if taken < c.least || taken > c.most {
			t.Errorf("%s: %d of %d are recorded, want %d to %d", name, taken, requests, c.least, c.most)
		}
	}
}
