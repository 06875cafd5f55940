package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

// longBody is more than all buffers between core and a client hold that does not read.
const longBody = 32 << 20

// writeLong sends that many bytes, as far as the client takes them.
func writeLong(w http.ResponseWriter, bytes int) {
	chunk := make([]byte, 64<<10)
	for sent := 0; sent < bytes; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// longTrace are the spans of a list: the request's and that of the call to core.
func longTrace(t *testing.T, collector *tracingtest.Collector, traceID string) (own, call tracingtest.Span) {
	t.Helper()
	collector.Await(t, traceID, "both spans have come", func(spans []tracingtest.Span) bool {
		for _, s := range spans {
			switch {
			case s.Name != "GET /v2/transfers":
			case s.Kind == "server":
				own = s
			case s.Kind == "client":
				call = s
			}
		}
		return own.ID != "" && call.ID != ""
	})
	return own, call
}

// begun is when the answer of the span began.
func begun(t *testing.T, s tracingtest.Span) time.Time {
	t.Helper()
	if len(s.Events) != 1 || s.Events[0].Name != tracing.ResponseStarted {
		t.Fatalf("%s %s has the events %v, want %q", s.Kind, s.Name, s.Events, tracing.ResponseStarted)
	}
	return s.Events[0].At
}

// The spans of a long answer last until a slow reader has read it, although it began long before.
func TestTrace_Stream(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", fmt.Sprint(longBody))
		}
		writeLong(w, longBody)
	})
	g := start(t, core, traced(collector.URL, "parentbased_always_on"))
	for n, query := range []string{"", "?length"} {
		id := fmt.Sprintf("%032x", n+1)
		c := g.dial(t)
		defer c.Close()
		c.write(t, request("GET", "/v2/transfers"+query, apiKey(core.AddKey(network.Test))+"Traceparent: 00-"+id+"-"+clientSpan+"-01\r\n", ""))
		answer, err := http.ReadResponse(c.reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		reading := time.Now()
		if n, err := io.Copy(io.Discard, answer.Body); n != longBody || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		own, call := longTrace(t, collector, id)
		for _, s := range []tracingtest.Span{own, call} {
			if at := begun(t, s); at.After(reading) || s.End.Before(reading) {
				t.Errorf("%s: the answer begins at %s, is read from %s on, and ends at %s", s.Kind, at, reading, s.End)
			}
		}
		if call.End.After(own.End) {
			t.Errorf("core's part ends at %s, the answer at %s", call.End, own.End)
		}
		if own.Failed || call.Failed || call.Attributes["http.response.body.size"] != int64(longBody) {
			t.Errorf("a list that was read:\n%s", tracingtest.Text([]tracingtest.Span{own, call}))
		}
	}
}

// A long answer that the client does not get in whole has a span that says why, whatever its status.
func TestTrace_BrokenStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		core func(http.ResponseWriter, *http.Request)
		// read is what the client does once the answer has begun.
		read      func(*clientConn, io.Reader)
		own, call string // why they fail
		// least is how long it takes to notice.
		least time.Duration
	}{
		"core breaks off": {
			core: func(w http.ResponseWriter, _ *http.Request) {
				writeLong(w, 256<<10)
				panic(http.ErrAbortHandler)
			},
			read: func(_ *clientConn, body io.Reader) { _, _ = io.Copy(io.Discard, body) },
			own:  "core_broken", call: "broken",
		},
		"core stalls": {
			core: func(w http.ResponseWriter, r *http.Request) {
				writeLong(w, 256<<10)
				<-r.Context().Done()
			},
			read: func(_ *clientConn, body io.Reader) { _, _ = io.Copy(io.Discard, body) },
			own:  "core_timeout", call: "timeout", least: slowTimeout * 9 / 10,
		},
		"the client leaves": {
			core: func(w http.ResponseWriter, _ *http.Request) { writeLong(w, longBody) },
			read: func(c *clientConn, _ io.Reader) { _ = c.Close() },
			own:  "client_gone", call: "client_gone",
		},
		"the client does not read": {
			core: func(w http.ResponseWriter, _ *http.Request) { writeLong(w, longBody) },
			read: func(*clientConn, io.Reader) {},
			own:  "slow_reader", call: "client_gone", least: slowTimeout * 9 / 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := tracingtest.Start(t, nil)
			core := coretest.Start(t, c.core)
			g := start(t, core, traced(collector.URL, "parentbased_always_on"), func(s *settings) {
				s.CoreTimeout, s.WriteTimeout, s.StreamRate = slowTimeout, slowTimeout, 1<<20
			})
			client := g.dial(t)
			defer client.Close()
			client.write(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test))+"Traceparent: "+trace+"\r\n", ""))
			answer, err := http.ReadResponse(client.reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			c.read(client, answer.Body)
			own, call := longTrace(t, collector, clientTrace)
			for _, s := range []tracingtest.Span{own, call} {
				want := map[string]string{"server": c.own, "client": c.call}[s.Kind]
				if !s.Failed || s.Attributes["error.type"] != want || s.Attributes["http.response.status_code"] != int64(200) {
					t.Errorf("%s: %t, %v, want %s", s.Kind, s.Failed, s.Attributes, want)
				}
				if lasted := s.End.Sub(begun(t, s)); lasted < c.least {
					t.Errorf("%s lasts %s from the beginning of the answer, want %s", s.Kind, lasted, c.least)
				}
			}
			if size, _ := call.Attributes["http.response.body.size"].(int64); size < 1 || size >= longBody {
				t.Errorf("%d bytes were passed on", size)
			}
		})
	}
}
