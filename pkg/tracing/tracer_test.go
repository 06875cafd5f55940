package tracing_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/tracing/tracingtest"
)

func now() time.Time { return time.Now() }

// bench is what a tracer shows of itself.
type bench struct {
	registry *prometheus.Registry
	log      asynctest.Buffer
}

func (b *bench) count(t *testing.T, outcome string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "intents_test_spans_total" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no intents_test_spans_total of %s", outcome)
	return 0
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
func TestOff(t *testing.T) {
	b := &bench{}
	if tracer := newTracer(t, tracing.Config{}, b); tracer != nil {
		t.Fatal("there is a tracer")
	}
	var off *tracing.Tracer
	parent := tracing.ReadParent([]string{sampled}, nil)
	allocations := testing.AllocsPerRun(100, func() {
		span := off.Serve("test", parent, true, time.Time{})
		child := span.Start("child", tracing.Client)
		child.Link(span)
		tracing.StartShared(1, func(int) tracing.Span { return span }, "shared", tracing.Client).End()
		child.Fail("x")
		child.Answered(500)
		child.Event(tracing.AnswerBegins)
		child.End()
		span.Name("other")
		span.End()
		if span.IsValid() || span.Recording() || len(child.AppendTraceparent(nil)) != 0 || child.TraceID() != "" {
			t.Error("the zero span tells something")
		}
	})
	if allocations != 0 {
		t.Errorf("%g allocations, want none", allocations)
	}
	if ctx := t.Context(); (tracing.Span{}).In(ctx) != ctx || tracing.FromContext(ctx).IsValid() {
		t.Error("the zero span is put into a context")
	}
}

// Every part of a span arrives at a collector as it was told.
func TestExport(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	b := &bench{}
	tracer := newTracer(t, tracing.Config{
		Endpoint: collector.URL, Headers: "authorization=Bearer%20abc", ServiceName: "the name",
		ResourceAttributes: "service.name=another,deployment.environment.name=test", TrustClients: true,
	}, b)
	began := time.Now().Add(-time.Second)
	server := tracer.Serve("first", tracing.ReadParent([]string{sampled}, []string{"a=b"}), false, began)
	other := tracer.Serve("of another trace", tracing.Parent{}, false, began)
	of := []tracing.Span{{}, server, other}
	shared := tracing.StartShared(len(of), func(n int) tracing.Span { return of[n] }, "INSERT transfers", tracing.Client)
	shared.Set(tracing.Query("INSERT", "transfers")...)
	other.Link(shared)
	shared.Event(tracing.AnswerBegins)
	shared.Fail("23505")
	shared.End()
	inContext := tracing.FromContext(server.In(t.Context())).Start("wait", tracing.Internal)
	inContext.End()
	server.Name("GET /v2/transfers/{id}")
	server.Set(tracing.Route("/v2/transfers/{id}"), tracing.ResponseStatus(200))
	server.End()
	other.End()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	byName := map[string]tracingtest.Span{}
	for _, s := range collector.Spans() {
		byName[s.Name] = s
	}
	want := map[string]tracingtest.Span{
		"GET /v2/transfers/{id}": {
			Kind: "server", TraceID: traceID, ID: server.SpanID(), Parent: spanID, State: "a=b",
			Attributes: map[string]any{"http.route": "/v2/transfers/{id}", "http.response.status_code": int64(200)},
		},
		"of another trace": {
			Kind: "server", TraceID: other.TraceID(), ID: other.SpanID(), Attributes: map[string]any{},
			Links: []tracingtest.Link{{TraceID: traceID, ID: shared.SpanID()}},
		},
		"INSERT transfers": {
			Kind: "client", TraceID: traceID, ID: shared.SpanID(), Parent: server.SpanID(), State: "a=b", Failed: true,
			Attributes: map[string]any{
				"db.operation.name": "INSERT", "db.collection.name": "transfers", "db.query.summary": "INSERT transfers",
				"db.operation.batch.size": int64(3), "error.type": "23505",
			},
			Links:  []tracingtest.Link{{TraceID: other.TraceID(), ID: other.SpanID()}},
			Events: []tracingtest.Event{{Name: "answer begins"}},
		},
		"wait": {Kind: "internal", TraceID: traceID, ID: inContext.SpanID(), Parent: server.SpanID(), State: "a=b", Attributes: map[string]any{}},
	}
	for name, s := range byName {
		if s.Service != "the name" || s.End.Before(s.Start) {
			t.Errorf("%s: of %q, from %s to %s", name, s.Service, s.Start, s.End)
		}
		if name == "GET /v2/transfers/{id}" && !s.Start.Equal(began.Round(0)) {
			t.Errorf("it began at %s, not %s", s.Start, began)
		}
		w := want[name]
		w.Service, w.Name, w.Start, w.End = s.Service, name, s.Start, s.End
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

// A client can ask for nothing: neither by the flag, nor by an id that the usual sampler always takes.
func TestClientsDoNotDecide(t *testing.T) {
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
	} {
		c.config.Endpoint = "http://127.0.0.1:1"
		tracer := newTracer(t, c.config, nil)
		var parents []string
		if c.parent != "" {
			parents = []string{c.parent}
		}
		taken := 0
		for range requests {
			span := tracer.Serve("test", tracing.ReadParent(parents, nil), c.decided, time.Time{})
			if c.parent != "" && span.TraceID() != c.parent[3:35] {
				t.Fatalf("%s: the trace id is %s", name, span.TraceID())
			}
			flag := string(span.AppendTraceparent(nil)[53:])
			if span.Recording() {
				taken++
			}
			if span.Recording() != (flag == "01" || flag == "03") {
				t.Fatalf("%s: the flags passed on are %s", name, flag)
			}
			if child := span.Start("child", tracing.Internal); child.Recording() != span.Recording() || child.TraceID() != span.TraceID() {
				t.Fatalf("%s: the child is of another mind", name)
			}
		}
		if taken < c.least || taken > c.most {
			t.Errorf("%s: %d of %d are recorded, want %d to %d", name, taken, requests, c.least, c.most)
		}
	}
}
