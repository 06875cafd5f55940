package forward_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/upstream/forward"
	"intents.internal/pkg/testkit/tracingtest"
)

// Each attempt is a span of its own, which core hears of; those after the first say which they are.
func TestTrace_Attempts(t *testing.T) {
	t.Parallel()
	tracer, collector := tracingtest.Tracer(t, "gateway")
	heard := make(chan string, 4)
	breaks := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Traceparent")
		hangUp(w, r)
	})
	answers := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "nothing here")
	})
	c := newClient(t, settings{unprobed: true}, answers.URL, refusing(t), breaks.URL)
	_, server := tracer.Start(t.Context(), "GET /v2/transfers/{id}", false, time.Now())
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	if _, err := c.Do(&forward.Request{
		Ctx: &ctx, Target: []byte("/v2/transfers/secret"), ID: []byte("id"), Span: server, Route: "/v2/transfers/{id}",
		Began: time.Now(), ClientIP: []byte("192.0.2.1"), Proto: "http",
	}); err != nil {
		t.Fatal(err)
	}
	server.End()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		Name, Kind, Parent string
		Failed             bool
		Error, Status, Try any
	}
	var got []attempt
	var told []string
	for _, s := range collector.Spans() {
		if s.Kind == "client" {
			got = append(got, attempt{
				s.Name, s.Kind, s.Parent, s.Failed, s.Attributes["error.type"], s.Attributes["http.response.status_code"],
				s.Attributes["http.request.resend_count"],
			})
			if s.Attributes["error.type"] != "unreachable" {
				told = append(told, "00-"+s.TraceID+"-"+s.ID+"-01")
			}
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d attempts, want one at each core: %+v", len(got), got)
	}
	last := got[2]
	if last.Error != "404" || last.Status != int64(404) || last.Name != "GET /v2/transfers/{id}" || last.Parent != server.SpanContext().SpanID().String() || !last.Failed {
		t.Errorf("the last attempt: %+v", last)
	}
	for n, a := range got[:2] {
		if a.Status != nil || a.Parent != server.SpanContext().SpanID().String() || !a.Failed || a.Error != "unreachable" && a.Error != "broken" {
			t.Errorf("attempt %d: %+v", n, a)
		}
	}
	for n, a := range got {
		if want := any(int64(n)); n > 0 && a.Try != want || n == 0 && a.Try != nil {
			t.Errorf("attempt %d has the count %v", n, a.Try)
		}
	}
	var parents []string
	for len(heard) > 0 { // each was heard before its core answered or hung up
		parents = append(parents, <-heard)
	}
	if diff := cmp.Diff(told, parents); diff != "" {
		t.Errorf("what the cores heard (-want +got):\n%s", diff)
	}
}

// The attempt of an answer that streams lasts until the body is closed, and tells how much of it there was.
func TestTrace_Stream(t *testing.T) {
	t.Parallel()
	const whole = 256 << 10
	core := startCore(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, whole))
		if r.URL.Query().Has("breaks") {
			panic(http.ErrAbortHandler)
		}
	})
	c := newClient(t, settings{unprobed: true}, core.URL)
	for name, test := range map[string]struct {
		query string
		read  int64
		why   any // nil for no failure
	}{
		"read":            {"", whole, nil},
		"left":            {"", 1000, "client_gone"},
		"broken off":      {"?breaks", whole, "broken"},
		"left, and broke": {"?breaks", 1000, "client_gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracer, collector := tracingtest.Tracer(t, "gateway")
			_, server := tracer.Start(t.Context(), "GET /v2/transfers", false, time.Now())
			var ctx fasthttp.RequestCtx
			ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
			stream, err := c.Do(&forward.Request{
				Ctx: &ctx, Target: []byte("/v2/transfers" + test.query), ID: []byte("id"), Span: server, Route: "/v2/transfers",
				Began: time.Now(), ClientIP: []byte("192.0.2.1"), Proto: "http", Stream: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			stream.Send(&ctx.Response, stream)
			passed, err := io.CopyN(io.Discard, ctx.Response.BodyStream(), test.read)
			if passed == whole { // is there more?
				_, err = ctx.Response.BodyStream().Read(make([]byte, 1))
			}
			t.Logf("%d bytes, then %v", passed, err)
			closed := time.Now()
			if err := ctx.Response.CloseBodyStream(); err != nil {
				t.Error(err)
			}
			server.End()
			if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			spans := collector.Spans()
			if len(spans) != 2 || spans[0].Kind != "client" {
				t.Fatalf("want the attempt, then the request:\n%s", tracingtest.Text(spans))
			}
			attempt, request := spans[0], spans[1]
			if attempt.Attributes["error.type"] != test.why || attempt.Attributes["http.response.body.size"] != passed || attempt.End.Before(closed) {
				t.Errorf("want the failure %v and %d bytes:\n%s", test.why, passed, tracingtest.Text(spans))
			}
			if broke := test.why == "broken"; request.Failed != broke || broke && request.Attributes["error.type"] != "core_broken" {
				t.Errorf("the request is told another thing than that core broke off, or not:\n%s", tracingtest.Text(spans))
			}
		})
	}
}
