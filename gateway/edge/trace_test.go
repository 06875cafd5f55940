package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/wire"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c" // of trace
	clientSpan  = "b7ad6b7169203331"
)

// traced has the gateway send spans to a collector.
func traced(endpoint, sampler string) func(*settings) {
	return func(s *settings) { s.TracesEndpoint, s.TracesSampler = endpoint, sampler }
}

// shown is what is compared of a span.
type shown struct {
	Name, Kind, Parent string
	Failed             bool
	Attributes         map[string]any
}

// show lists spans by their names, each parent by its own; of those that began elsewhere it is the id.
func show(spans []tracingtest.Span) map[string]shown {
	names := map[string]string{}
	for _, s := range spans {
		names[s.ID] = s.Kind + " " + s.Name
	}
	all := map[string]shown{}
	for _, s := range spans {
		parent := names[s.Parent]
		if parent == "" {
			parent = s.Parent
		}
		all[names[s.ID]] = shown{Name: s.Name, Kind: s.Kind, Parent: parent, Failed: s.Failed, Attributes: s.Attributes}
	}
	return all
}

// A request has one span of its own, below the client's, and one for the call to core; none tells more than the access log does.
func TestTrace_Request(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	core := coretest.Start(t, nil)
	g := start(t, core, traced(collector.URL, "parentbased_always_on"))
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{KeyID: "the-key-id"})
	g.send(t, request("GET", "/v2/transfers/secret-path?secret=query",
		apiKey(key)+"X-Request-Id: r1\r\nUser-Agent: secret-agent\r\nTraceparent: "+trace+"\r\nTracestate: a=b\r\n", ""))
	spans := collector.Await(t, clientTrace, "all spans have come", func(s []tracingtest.Span) bool { return len(s) == 2 })

	port, _ := strconv.ParseInt(core.URL.Port(), 10, 64)
	const server = "server GET /v2/transfers/{id}"
	want := map[string]shown{
		server: {Name: "GET /v2/transfers/{id}", Kind: "server", Parent: clientSpan, Attributes: map[string]any{
			"http.request.method": "GET", "http.route": "/v2/transfers/{id}", "http.response.status_code": int64(200), "url.scheme": "http",
			"intents.request_id": "r1", "intents.key_id": "the-key-id", "intents.environment": "test", "intents.outcome": "ok",
		}},
		"client GET /v2/transfers/{id}": {Name: "GET /v2/transfers/{id}", Kind: "client", Parent: server, Attributes: map[string]any{
			"http.request.method": "GET", "url.template": "/v2/transfers/{id}", "http.response.status_code": int64(200),
			"server.address": core.URL.Hostname(), "server.port": port,
		}},
	}
	if diff := cmp.Diff(want, show(spans)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var own, forwarded tracingtest.Span
	for _, s := range spans {
		switch {
		case s.Kind == "server":
			own = s
		case s.Name == "GET /v2/transfers/{id}":
			forwarded = s
		}
	}
	heard := core.Requests()[0].Header
	if diff := cmp.Diff(http.Header{
		"Traceparent": {"00-" + clientTrace + "-" + forwarded.ID + "-01"}, "Tracestate": {"a=b"}, "X-Trace-Decided": {"1"},
	}, http.Header{
		"Traceparent": heard["Traceparent"], "Tracestate": heard["Tracestate"], "X-Trace-Decided": heard["X-Trace-Decided"],
	}); diff != "" {
		t.Errorf("core heard (-want +got):\n%s", diff)
	}
	hash := key.Hash()
	for _, secret := range []string{key.Reveal(), key.Start(), fmt.Sprintf("%x", hash[:]), "secret"} {
		if text := tracingtest.Text(spans); strings.Contains(text, secret) {
			t.Errorf("the spans hold %q:\n%s", secret, text)
		}
	}
	line := accessLine(t, g)
	if line["trace_id"] != clientTrace || line["span_id"] != own.ID {
		t.Errorf("the log line has the ids %v and %v, want %s and %s", line["trace_id"], line["span_id"], clientTrace, own.ID)
	}
}

// accessLine is the first of the access log.
func accessLine(t *testing.T, g *gateway) (line map[string]any) {
	t.Helper()
	asynctest.Eventually(t, "the line is written", func() bool {
		for text := range strings.Lines(g.log.String()) {
			if strings.Contains(text, `"request"`) {
				return json.Unmarshal([]byte(text), &line) == nil
			}
		}
		return false
	})
	return line
}

// What the gateway refuses is no error of the server's by the conventions, what core fails at is.
func TestTrace_Failures(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	g := start(t, core, traced(collector.URL, "parentbased_always_on"))
	cases := []struct {
		method, target, headers, name, outcome string
		failed                                 bool
	}{
		{"GET", "/v2/tokens", "", "GET /v2/tokens", "no_key", false},
		{"GET", "/nowhere/secret", "", "GET", "not_found", false},
		{"BREW", "/nowhere/secret", "", "HTTP other", "method_not_allowed", false},
		{"GET", "/v2/transfers/1", apiKey(core.AddKey(network.Test)), "GET /v2/transfers/{id}", "core_error", true},
	}
	idOf := func(n int) string { return fmt.Sprintf("%032x", n+1) }
	for n, c := range cases { // all at once, as each export takes the seconds that the exporter waits for more
		g.send(t, request(c.method, c.target, c.headers+"Traceparent: 00-"+idOf(n)+"-"+clientSpan+"-01\r\n", ""))
	}
	for n, c := range cases {
		of := func(s []tracingtest.Span) (own tracingtest.Span, found bool) {
			for _, span := range s {
				if span.Kind == "server" {
					return span, true
				}
			}
			return own, false
		}
		own, _ := of(collector.Await(t, idOf(n), c.name, func(s []tracingtest.Span) bool { _, found := of(s); return found }))
		if own.Failed != c.failed {
			t.Errorf("%s %s: %+v", c.method, c.target, own)
		}
		if c.failed != (own.Attributes["error.type"] == c.outcome) {
			t.Errorf("%s %s: error.type %v", c.method, c.target, own.Attributes["error.type"])
		}
		if strings.Contains(tracingtest.Text([]tracingtest.Span{own}), "secret") {
			t.Errorf("%s %s: the path is told: %+v", c.method, c.target, own)
		}
		if c.method != "BREW" && (own.Name != c.name || own.Attributes["intents.outcome"] != c.outcome) {
			t.Errorf("%s %s: %q, %v", c.method, c.target, own.Name, own.Attributes)
		}
	}
}

// A client's sampled flag is not believed: where the gateway says no, core hears no, and nothing is sent to the collector.
func TestTrace_ClientSampledFlag(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	core := coretest.Start(t, nil)
	g := start(t, core, traced(collector.URL, "parentbased_always_off"))
	key := apiKey(core.AddKey(network.Test))
	g.send(t, request("GET", "/v2/tokens", key+"Traceparent: "+trace+"\r\nTracestate: a=b\r\nX-Trace-Decided: 1\r\n", ""))
	heard := core.Requests()[0].Header
	parent := heard.Get("Traceparent")
	if !strings.HasPrefix(parent, "00-"+clientTrace+"-") || !strings.HasSuffix(parent, "-00") || strings.Contains(parent, clientSpan) {
		t.Errorf("core heard the traceparent %s", parent)
	}
	if heard.Get("X-Trace-Decided") != "1" || heard.Get("Tracestate") != "a=b" {
		t.Errorf("core heard %v", heard)
	}
	if line := accessLine(t, g); line["trace_id"] != clientTrace {
		t.Errorf("the log line has the trace id %v", line["trace_id"])
	}
	if exports, _ := collector.Exports(); exports != 0 {
		t.Errorf("%d exports", exports)
	}
}

// Without tracing a client's trace goes through, and core is not told that the gateway decided on it.
func TestTrace_WithoutTracer(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	parents := []string{trace, "cc" + trace[2:] + "-more"} // the second is of a later version
	for _, parent := range parents {
		g.send(t, request("GET", "/v2/tokens", key+"Traceparent: "+parent+"\r\nTracestate: a=b\r\nX-Trace-Decided: 1\r\n", ""))
	}
	for n := range parents {
		heard := core.Requests()[n].Header
		if heard.Get("Traceparent") != trace || heard.Get("Tracestate") != "a=b" || heard["X-Trace-Decided"] != nil {
			t.Errorf("core heard %v, want %s", heard, trace)
		}
	}
	line := accessLine(t, g)
	if _, has := line["span_id"]; has || line["trace_id"] != clientTrace {
		t.Errorf("the log line: %v", line)
	}
}

// An invalid trace context is replaced, never copied.
func TestTrace_InvalidParent(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	core := coretest.Start(t, nil)
	g := start(t, core, traced(collector.URL, "parentbased_always_on"))
	key := apiKey(core.AddKey(network.Test))
	bad := []string{
		"Traceparent: 00-xyz\r\nTracestate: a=b\r\n",
		"Traceparent: " + trace + "\r\nTraceparent: " + trace + "\r\nTracestate: a=b\r\n",
		"Traceparent: " + strings.ToUpper(trace) + "\r\nTracestate: a=b\r\n",
		"Traceparent: ff" + trace[2:] + "\r\n",
		"Tracestate: a=b\r\n",
	}
	for _, headers := range bad {
		g.send(t, request("GET", "/v2/tokens", key+headers, ""))
	}
	for n, headers := range bad {
		heard := core.Requests()[n].Header
		if parent := heard.Get("Traceparent"); !strings.HasPrefix(parent, "00-") || len(parent) != 55 || strings.Contains(parent, clientTrace) || heard["Tracestate"] != nil {
			t.Errorf("%q: core heard %v", headers, heard)
		}
	}
}

// A client's tracestate is passed on with its trace, if it is well-formed and within 512 bytes.
func TestTrace_Tracestate(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	cases := []struct{ headers, want string }{
		{"Tracestate: congo=t61rcWkgMzE,rojo=00f067aa0ba902b7\r\n", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"},
		{"Tracestate: congo=1\r\nTracestate: rojo=2\r\n", "congo=1,rojo=2"},
		{"Tracestate: congo=1,rojo\r\n", ""},
		{"Tracestate: congo=" + strings.Repeat("x", 512) + "\r\n", ""},
	}
	for _, c := range cases {
		g.send(t, request("GET", "/v2/tokens", key+"Traceparent: "+trace+"\r\n"+c.headers, ""))
	}
	for n, c := range cases {
		if heard := core.Requests()[n].Header; heard.Get("Traceparent") != trace || heard.Get("Tracestate") != c.want {
			t.Errorf("%q: core heard %v", c.headers, heard)
		}
	}
}
