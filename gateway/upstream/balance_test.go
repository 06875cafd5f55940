package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/tracingtest"
)

func TestClient_CoreRefuses(t *testing.T) {
	t.Parallel()
	here := startCore(t, name("here"))
	for kind, r := range map[string]request{"read": read, "write": write, "repeated write": repeatedWrite, "list": list} {
		// Each kind finds out by itself.
		c := newClient(t, settings{unprobed: true}, refusing(t), refusing(t), here.URL)
		for range 20 {
			if got := c.answer(r); got != "here" {
				t.Errorf("%s: %s", kind, got)
			}
		}
		if c.set.All()[0].Up() || c.set.All()[1].Up() || !c.set.All()[2].Up() {
			t.Errorf("%s: only the core that answers is up", kind)
		}
	}
	if got := here.hits.Load(); got != 80 {
		t.Errorf("%d requests arrived, want 80", got)
	}
}

func TestClient_NoCoreReachable(t *testing.T) {
	t.Parallel()
	c := newClient(t, settings{}, refusing(t), refusing(t))
	for range 3 {
		if _, err := c.do(write); !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("error: %v", err)
		}
	}
}

// What broke off goes to another core, once, and only if it may be carried out twice.
func TestRetry_ResponseBreaksOff(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		request
		hits int64 // at both cores
	}{
		"read": {read, 2}, "list": {list, 2}, "repeated write": {repeatedWrite, 2}, "write": {write, 1},
		"write with a key unknown to core": {request{method: "POST", body: "{}", idempotencyKey: "once", ignoresIdempotencyKey: true}, 1},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			one, other := startCore(t, hangUp), startCore(t, hangUp)
			_, err := newClient(t, settings{unprobed: true}, one.URL, other.URL).do(c.request)
			if !errors.Is(err, upstream.ErrBroken) {
				t.Errorf("error: %v", err)
			}
			if got := one.hits.Load() + other.hits.Load(); got != c.hits || one.hits.Load() > 1 || other.hits.Load() > 1 {
				t.Errorf("the cores were asked %d and %d times", one.hits.Load(), other.hits.Load())
			}

			// With a core that works, only a write that core could carry out twice can fail.
			broken, works := startCore(t, hangUp), startCore(t, name("here"))
			client := newClient(t, settings{unprobed: true}, broken.URL, works.URL)
			failed := 0
			for range 10 {
				if client.answer(c.request) != "here" {
					failed++
				}
			}
			if failed > 1 || failed == 1 && c.hits == 2 { // the first to come is the last, since the core is ejected
				t.Errorf("%d requests failed", failed)
			}
			if got := broken.hits.Load(); got > 1 {
				t.Errorf("the broken core was asked %d times", got)
			}
		})
	}
}

// A short list that stops in its midst can still be had elsewhere, since none of it has gone on.
func TestRetry_ListBreaksOff(t *testing.T) {
	t.Parallel()
	broken := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "[")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	works := startCore(t, name("[]"))
	c := newClient(t, settings{unprobed: true}, broken.URL, works.URL)
	for range 4 {
		if got := c.answer(list); got != "[]" {
			t.Error(got)
		}
	}
	if broken.hits.Load() != 1 {
		t.Errorf("the broken core was asked %d times", broken.hits.Load())
	}
}

// Connections that core closed while they lay idle cost nobody anything, whatever their number.
func TestPool_CoreClosedIdleConnections(t *testing.T) {
	t.Parallel()
	const clients = 8
	for kind, r := range map[string]request{"write": write, "read": read, "repeated write": repeatedWrite} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var together sync.WaitGroup
			together.Add(clients)
			only := startCore(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") == "warm" {
					together.Done()
					together.Wait() // so that each has a connection of its own
				}
				fmt.Fprint(w, "here")
			})
			c := newClient(t, settings{unprobed: true}, only.URL)
			var all sync.WaitGroup
			for range clients {
				all.Go(func() { c.answer(request{method: "POST", idempotencyKey: "warm"}) })
			}
			all.Wait()
			only.CloseClientConnections()
			before := only.hits.Load()
			if got := c.answer(r); got != "here" {
				t.Error(got)
			}
			if got := only.hits.Load() - before; got != 1 {
				t.Errorf("it arrived %d times", got)
			}
		})
	}
}

// Requests avoid a core that is slow, as far as others are faster.
func TestClient_LeastRequests(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := startCore(t, func(http.ResponseWriter, *http.Request) { <-release })
	quick := startCore(t, name("here"))
	c := newClient(t, settings{}, slow.URL, quick.URL)
	stuck := make(chan string, 1)
	for slow.hits.Load() == 0 { // the two take turns until then
		quickly := quick.hits.Load()
		go func() {
			if got := c.answer(write); got != "here" {
				stuck <- got
			}
		}()
		asynctest.Eventually(t, "a request arrives", func() bool { return slow.hits.Load() > 0 || quick.hits.Load() > quickly })
	}
	for range 50 {
		if got := c.answer(write); got != "here" {
			t.Fatal(got)
		}
	}
	if got := slow.hits.Load(); got != 1 {
		t.Errorf("%d requests went to the core that is stuck", got-1)
	}
	close(release)
	<-stuck
}

// A core that fails its requests at once, alone or in batches, does not draw those of the others.
func TestClient_FailsFast(t *testing.T) {
	t.Parallel()
	for kind, r := range map[string]request{"read": read, "write": write, "batched": batched("id")} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fails := startCore(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			works := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
				pause(t, 5*time.Millisecond)
				fmt.Fprint(w, "here")
			})
			fails.batches.Store(r.batch)
			works.batches.Store(r.batch)
			c := newClient(t, settings{}, fails.URL, works.URL)
			asynctest.Eventually(t, "both are known to serve batches", func() bool { return c.set.All()[0].Batches() == r.batch && c.set.All()[1].Batches() == r.batch })
			const clients, each = 4, 100
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for range each {
						if _, err := c.do(r); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if got := fails.hits.Load(); got == 0 || got > clients*each/4 {
				t.Errorf("%d of %d requests went to the core that fails", got, clients*each)
			}
		})
	}
}

// A request has one span, below its own, whatever it takes: with the core that answered, and how often it was sent again.
func TestClient_Span(t *testing.T) {
	t.Parallel()
	tracer, collector := tracingtest.Tracer(t, "gateway")
	parents := make(chan string, 4)
	answers := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusNotFound)
	})
	c := newClient(t, settings{unprobed: true}, answers.URL, refusing(t), startCore(t, hangUp).URL)
	_, server := tracer.Start(t.Context(), "GET /v2/transfers/{id}", false, time.Now())
	var sent fasthttp.Request
	if err := c.Do(&upstream.Request{
		Client: &sent, Target: []byte("/v2/transfers/secret"), Span: server, Route: "/v2/transfers/{id}", Began: time.Now(),
	}, &upstream.Response{}); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	spans := collector.Spans()
	if len(spans) != 1 {
		t.Fatalf("want one span:\n%s", tracingtest.Text(spans))
	}
	got, port := spans[0], answers.Listener.Addr().(*net.TCPAddr).Port
	if parent := <-parents; parent != "00-"+got.TraceID+"-"+got.ID+"-01" || got.Parent != server.SpanContext().SpanID().String() || got.Name != "GET /v2/transfers/{id}" {
		t.Errorf("core heard %s of:\n%s", parent, tracingtest.Text(spans))
	}
	if a := got.Attributes; a["server.port"] != int64(port) || a["http.response.status_code"] != int64(404) || a["error.type"] != "404" || a["http.request.resend_count"] != int64(1) {
		t.Errorf("%v", a)
	}
}
