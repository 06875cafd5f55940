package limit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/testkit/tracingtest"
)

// takeTogether has requests, each of a key and a trace of its own, decided at once, and returns the spans.
func takeTogether(t *testing.T, l limiter, requests int) []tracingtest.Span {
	t.Helper()
	tracer, collector := tracingtest.Tracer(t, "gateway")
	prefix := uuid.NewString()
	var all sync.WaitGroup
	for n := range requests {
		_, span := tracer.Start(t.Context(), "request", false, time.Now())
		all.Go(func() {
			if _, err := l.Take(span, fmt.Sprint("secret", prefix, n), fiftyADay, time.Now()); err != nil {
				t.Error(err)
			}
			span.End()
		})
	}
	all.Wait()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return collector.Spans()
}

// A call to Redis that requests share is one span, below one of them and linked with the others, which link to it: a script call
// on one server, a pipeline on a Cluster.
func TestTrace_SharedCall(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		r := startRedis(t, false)
		if r.PID() == 0 {
			t.Skip("no redis-server or valkey-server on PATH, and no other can be paused")
		}
		l := newLimiter(t, r.URL, generous, limit.Closed)
		// The first batch waits, so that the others gather.
		if err := l.redis.Do(t.Context(), "CLIENT", "PAUSE", "300").Err(); err != nil {
			t.Fatal(err)
		}
		checkCalls(t, takeTogether(t, l, 40), "EVALSHA", 1)
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		l := onCluster(t, topologytest.StartCluster(t, 3, 0, topologytest.Security{}), 1, generous, limit.Closed)[0]
		checkCalls(t, takeTogether(t, l, 40), "PIPELINE", 1)
	})
}

// checkCalls wants each of 40 requests to name the calls that it had its part in, most at the most.
func checkCalls(t *testing.T, spans []tracingtest.Span, name string, most int) {
	t.Helper()
	asking, calls := map[string]tracingtest.Span{}, map[string]tracingtest.Span{}
	for _, s := range spans {
		switch s.Name {
		case "limit":
			asking[s.ID] = s
		case name:
			calls[s.ID] = s
		}
	}
	if len(asking) != 40 || len(calls) == 0 || len(calls) > 39 {
		t.Fatalf("%d requests asked in %d calls, want 40 in fewer:\n%s", len(asking), len(calls), tracingtest.Text(spans))
	}
	parts := map[string]int{}
	for _, s := range asking {
		if len(s.Links) < 1 || len(s.Links) > most {
			t.Errorf("a request has its part in %v, want 1 to %d calls", s.Links, most)
		}
		for _, link := range s.Links {
			parts[link.ID]++
			call := calls[link.ID]
			in := call.Parent == s.ID && call.TraceID == s.TraceID
			for _, back := range call.Links {
				in = in || back.ID == s.ID && back.TraceID == s.TraceID
			}
			if !in || call.TraceID != link.TraceID {
				t.Errorf("a request links to the call %+v, which does not know it", call)
			}
		}
	}
	for id, call := range calls {
		if parts[id] != 1+len(call.Links) {
			t.Errorf("a call with %d requests, to which %d link", 1+len(call.Links), parts[id])
		}
		if size, ofMany := call.Attributes["db.operation.batch.size"]; ofMany && size != int64(parts[id]) {
			t.Errorf("a call of %d requests has the batch size %v", parts[id], size)
		}
		if call.Kind != "client" || call.Attributes["db.system.name"] != "redis" || call.Attributes["db.operation.name"] != name || call.Failed {
			t.Errorf("%+v", call)
		}
	}
	if text := tracingtest.Text(spans); strings.Contains(text, "secret") {
		t.Errorf("the spans hold a bucket's name:\n%s", text)
	}
}

// A Redis that does not answer shows in the trace; the request goes on all the same.
func TestTrace_RedisDown(t *testing.T) {
	t.Parallel()
	r := startRedis(t, true)
	l := newLimiter(t, r.URL, generous, limit.Local)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range takeTogether(t, l, 5) {
		switch {
		case s.Name == "limit" && s.Failed:
			failed++
			if kind := s.Attributes["error.type"]; kind != "redis" && kind != "breaker_open" {
				t.Errorf("error.type %v", kind)
			}
		case s.Name == "request" && s.Failed:
			t.Errorf("the request failed: %+v", s)
		}
	}
	if failed != 5 {
		t.Errorf("%d of 5 requests show that Redis did not answer", failed)
	}
}
