package tracing_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"intents.internal/pkg/testkit/endless"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

// A collector that hangs costs spans: nobody waits for it, memory stays bounded, and what is lost is counted.
func TestTracer_CollectorHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	collector := tracingtest.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	b := &bench{}
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL}, b)
	began := time.Now()
	const spans = 20_000
	for range spans {
		_, span := tracer.Start(t.Context(), "test", false, began)
		span.End()
	}
	if elapsed := time.Since(began); elapsed > 5*time.Second {
		t.Errorf("%d spans took %s", spans, elapsed)
	}
	if dropped := b.count(t, "dropped"); dropped < spans-8192-1 || dropped >= spans {
		t.Errorf("%g of %d spans counted as dropped, want all that do not fit in 8192", dropped, spans)
	}
	ending := time.Now()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if elapsed := time.Since(ending); elapsed > tracing.FlushTimeout+3*time.Second {
		t.Errorf("the end took %s, which should take %s at most", elapsed, tracing.FlushTimeout)
	}
}

// A collector that refuses is logged now and then, and what it refused is counted.
func TestTracer_CollectorRefuses(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	b := &bench{}
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL}, b)
	for range 2000 {
		_, span := tracer.Start(t.Context(), "test", false, time.Now())
		span.End()
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if failed := b.count(t, "failed"); failed != 2000 {
		t.Errorf("%g spans counted as failed, want 2000", failed)
	}
	if lines := strings.Count(b.log.String(), "traces cannot be exported"); lines != 1 {
		t.Errorf("%d lines, want 1:\n%s", lines, b.log.String())
	}
}

// A collector whose answer never ends, a 101 among them, does not keep a service from ending.
func TestTracer_EndlessResponses(t *testing.T) {
	t.Parallel()
	endless.WantEnd(t, endless.HTTP, func(ctx context.Context, address string) {
		tracer := newTracer(t, tracing.Config{Endpoint: "http://" + address}, nil)
		_, span := tracer.Start(ctx, "test", false, time.Now())
		span.End()
		if err := tracer.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
}
