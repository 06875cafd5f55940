package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// hostileHeaders are what a client must not be able to tell core.
const hostileHeaders = "X-Account-Id: 1\r\nX-Key-Id: 2\r\nX-Key-Env: live\r\nX-Gateway-Secret: guess\r\nX-Forwarded-For: 203.0.113.9\r\n" +
	"X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=203.0.113.9\r\nX-Real-Ip: 203.0.113.9\r\n" +
	"Cookie: session=1\r\nOrigin: https://evil.example\r\nAuthorization: Basic eA==\r\nProxy-Authorization: x\r\nTE: trailers\r\n" +
	"Connection: keep-alive, X-Key-Id\r\nKeep-Alive: timeout=5\r\nX-Anything: else\r\n"

func TestForward_Headers(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{KeyID: "key-id", AccountID: "account-id"})
	body := transfer("eip155:11155111", "eip155:11155111")
	raw := request("POST", "/v2/transfers?a=%2e&b=c", apiKey(key)+hostileHeaders+
		"Content-Type: application/json\r\nAccept: application/json\r\nAccept-Language: en\r\nIf-None-Match: \"x\"\r\nIdempotency-Key: once\r\n"+
		"User-Agent: test/1\r\nX-Request-Id: my.request-1\r\nTraceparent: "+trace+"\r\nTracestate: a=b\r\n", body)
	got := g.send(t, raw)
	want := unkept(response{Status: 200, Body: "[]", Header: http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"2"}, "X-Request-Id": {"my.request-1"},
		"Ratelimit": {`"default";r=49;t=2, "account";r=999;t=1`}, "Ratelimit-Policy": {defaultPolicy},
	}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	heard := []coretest.Request{{
		Method: "POST", Target: "/v2/transfers?a=%2e&b=c", Host: core.URL.Host, Body: body,
		Header: http.Header{
			"Accept": {"application/json"}, "Accept-Language": {"en"}, "Content-Length": {fmt.Sprint(len(body))},
			"Content-Type": {"application/json"}, "Idempotency-Key": {"once"}, "If-None-Match": {`"x"`},
			"Traceparent": {trace}, "Tracestate": {"a=b"}, "User-Agent": {"test/1"},
			"X-Account-Id": {"account-id"}, "X-Key-Id": {"key-id"}, "X-Key-Env": {"test"},
			"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}, "X-Request-Id": {"my.request-1"},
		},
	}}
	if diff := cmp.Diff(heard, core.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestForward_MalformedTraceAndRequestID(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	g.send(t, request("GET", "/v2/tokens", key+"Traceparent: 00-xyz\r\nTracestate: a=b\r\nX-Request-Id: "+strings.Repeat("a", 65)+"\r\n", ""))
	heard := core.Requests()[0].Header
	if !uuidForm.MatchString(heard.Get("X-Request-Id")) || heard.Get("Traceparent") != "" || heard.Get("Tracestate") != "" {
		t.Errorf("core heard %v", heard)
	}
}

func TestForward_SessionRoutes(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Content-Security-Policy", "X-Frame-Options", "Location", "Vary"} {
			w.Header().Set(name, "said")
		}
		w.Header().Add("Set-Cookie", "a=1; Path=/; HttpOnly")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Server", "hidden")
		w.Header().Set("X-Internal", "hidden")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusSeeOther)
		fmt.Fprint(w, "<p>")
	})
	g := start(t, core)
	got := g.send(t, request("POST", "/auth/sign-in/email", hostileHeaders+"Sec-Fetch-Site: same-origin\r\nReferer: https://api.example.com/\r\n"+jsonType, `{}`))
	want := unkept(response{Status: 303, Body: "<p>", Header: http.Header{
		"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {"3"}, "Set-Cookie": {"a=1; Path=/; HttpOnly", "b=2"},
		"Content-Security-Policy": {"said"}, "X-Frame-Options": {"said"}, "Location": {"said"}, "Vary": {"said"},
	}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	heard := []coretest.Request{{
		Method: "POST", Target: "/auth/sign-in/email", Host: "api.example.com", Body: `{}`,
		Header: http.Header{
			"Content-Length": {"2"}, "Content-Type": {"application/json"}, "Cookie": {"session=1"}, "Origin": {"https://evil.example"},
			"Referer": {"https://api.example.com/"}, "Sec-Fetch-Site": {"same-origin"},
			"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}, "X-Request-Id": core.Requests()[0].Header["X-Request-Id"],
		},
	}}
	if diff := cmp.Diff(heard, core.Requests()); diff != "" {
		t.Error(diff)
	}
}

// Every keyed operation of core's API passes with its body, as its document lists them.
func TestForward_EveryOperation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../core/web/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	core := coretest.Start(t, nil)
	g := start(t, core)
	seen := 0
	for path, operations := range document.Paths {
		for method, raw := range operations {
			var operation struct {
				RequestBody json.RawMessage
				Security    []map[string]any
			}
			if method != "parameters" && json.Unmarshal(raw, &operation) != nil {
				t.Fatalf("%s %s is no operation", method, path)
			}
			if len(operation.Security) == 0 || operation.Security[0]["apiKeyHeader"] == nil {
				continue
			}
			seen++
			target, headers, body := strings.NewReplacer("{id}", "1", "{eventId}", "evt_1").Replace(path), apiKey(core.AddKey(network.Test)), ""
			if operation.RequestBody != nil {
				headers, body = headers+jsonType, transfer("eip155:11155111", "eip155:11155111")
			}
			if path == "/v2/transfers/batch" {
				headers, body = headers+"Idempotency-Key: a\r\n", transferBatch(body)
			}
			if got := g.send(t, request(strings.ToUpper(method), target, headers, body)); got.Status != 200 {
				t.Errorf("%s %s: %+v", method, path, got)
			}
			if last := core.Requests()[len(core.Requests())-1]; last.Target != target || last.Body != body {
				t.Errorf("%s %s: core heard %+v", method, path, last)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d operations", seen)
	}
}

// Each operation on webhooks passes under its own route, with its body.
func TestForward_Webhooks(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	for _, r := range []struct{ method, path, route, body string }{
		{"GET", "/v2/webhooks", "/v2/webhooks", ""},
		{"POST", "/v2/webhooks", "/v2/webhooks", `{"url":"https://a.example"}`},
		{"GET", "/v2/webhooks/1", "/v2/webhooks/{id}", ""},
		{"PATCH", "/v2/webhooks/1", "/v2/webhooks/{id}", `{"enabled":true}`},
		{"DELETE", "/v2/webhooks/1", "/v2/webhooks/{id}", ""},
		{"POST", "/v2/webhooks/1/rotate-secret", "/v2/webhooks/{id}/rotate-secret", `{"gracePeriod":0}`},
		{"POST", "/v2/webhooks/1/test", "/v2/webhooks/{id}/test", ""},
		{"POST", "/v2/webhooks/1/replay", "/v2/webhooks/{id}/replay", `{"after":"a"}`},
		{"GET", "/v2/webhooks/1/deliveries?limit=1", "/v2/webhooks/{id}/deliveries", ""},
		{"GET", "/v2/webhooks/1/deliveries/evt_1", "/v2/webhooks/{id}/deliveries/{eventId}", ""},
		{"POST", "/v2/webhooks/1/deliveries/evt_1/retry", "/v2/webhooks/{id}/deliveries/{eventId}/retry", ""},
	} {
		if path, _, _ := strings.Cut(r.path, "?"); edge.RouteOf([]byte(path)) != r.route {
			t.Errorf("%s has the route %s", r.path, edge.RouteOf([]byte(path)))
		}
		if got := g.send(t, request(r.method, r.path, key+jsonType, r.body)); got.Status != 200 {
			t.Errorf("%s %s: %+v", r.method, r.path, got)
		}
		last := core.Requests()[len(core.Requests())-1]
		if last.Method != r.method || last.Target != r.path || last.Body != r.body || last.Header.Get("X-Key-Env") != "test" {
			t.Errorf("%s %s: core heard %+v", r.method, r.path, last)
		}
	}
}

func TestForward_SetCookieRemoved(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Set-Cookie", "a=1") })
	g := start(t, core)
	if got := g.send(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), "")); got.Header["Set-Cookie"] != nil {
		t.Errorf("answer: %+v", got)
	}
}

func TestForward_ConditionalRequests(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, r.RequestURI)
	})
	g := start(t, core)
	document := unkept(response{Status: 200, Body: "/openapi.json", Header: http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"13"}, "Etag": {`"v1"`},
	}})
	for _, path := range []string{"/openapi.json", "/v2/openapi.json"} {
		if diff := cmp.Diff(document, g.send(t, request("GET", path, "", ""))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if diff := cmp.Diff(headOf(document), g.send(t, request("HEAD", path, "", ""))); diff != "" {
			t.Errorf("HEAD %s: %s", path, diff)
		}
		unchanged := unkept(response{Status: 304, Header: http.Header{"Etag": {`"v1"`}}})
		if diff := cmp.Diff(unchanged, g.send(t, request("GET", path, "If-None-Match: \"v1\"\r\n", ""))); diff != "" {
			t.Errorf("conditional %s: %s", path, diff)
		}
	}
}

// Anybody may ask for /, and core decides by Accept whether a browser does.
func TestForward_Index(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.RequestURI+r.Header.Get("Accept"))
		w.WriteHeader(http.StatusSeeOther)
	})
	want := unkept(response{Status: 303, Header: http.Header{"Location": {"/text/html"}, "Content-Length": {"0"}}})
	if diff := cmp.Diff(want, start(t, core).send(t, request("GET", "/", "Accept: text/html\r\n", ""))); diff != "" {
		t.Error(diff)
	}
}

func TestForward_CoreUnreachable(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := core.AddKey(network.Test)
	body := transfer("eip155:11155111", "eip155:11155111")
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"The service does not answer now; the request was not carried out. Try again shortly."}`, "Retry-After", "1")
	core.Stop()
	if diff := cmp.Diff(want, g.send(t, request("GET", "/auth/get-session", "", ""))); diff != "" {
		t.Error(diff)
	}
	// A key without a trusted verdict cannot pass.
	want = refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"API keys cannot be checked now. Try again shortly."}`, "Retry-After", "1")
	if diff := cmp.Diff(want, g.send(t, request("POST", "/v2/transfers", apiKey(key)+jsonType, body))); diff != "" {
		t.Error(diff)
	}
}
