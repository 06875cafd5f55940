package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/retrytest"
	"intents.internal/pkg/wire"
)

const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

// transfer is a body of POST /v2/transfers from one chain to another.
func transfer(from, to string) string {
	return fmt.Sprintf(`{"source":{"account":"%s:%s","token":"%s:%s","amount":"1"},"destination":{"account":"%s:%s"}}`,
		from, alice, from, alice, to, bob)
}

// transferBatch is a body of POST /v2/transfers/batch.
func transferBatch(items ...string) string { return `{"transfers":[` + strings.Join(items, ",") + `]}` }

func apiKey(key apikey.Key) string { return "x-api-key: " + key.Reveal() + "\r\n" }

const jsonType = "Content-Type: application/json\r\n"

// refusal is the whole of an answer the gateway makes itself, of this body with the request's id; headers are names and values in turn.
func refusal(status int, body string, headers ...string) response {
	body = strings.TrimSuffix(body, "}") + anyRequestID + "}"
	r := response{Status: status, Body: body, Header: http.Header{
		"Cache-Control": {"no-store"}, "Content-Length": {fmt.Sprint(len(body))}, "Content-Type": {"application/json"},
	}}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = []string{headers[i+1]}
	}
	return r
}

// fresh are the RateLimit fields of a key's first request.
var fresh = []string{"Ratelimit", `"default";r=49;t=2, "account";r=999;t=1`, "Ratelimit-Policy", defaultPolicy}

// defaultPolicy is the RateLimit-Policy of a key with the default limits.
const defaultPolicy = `"default";q=50;w=60, "account";q=1000;w=60`

const badKeyBody = `{"code":"INVALID_API_KEY","message":"This API key is not valid: it is unknown, expired, disabled, or its account no longer exists."}`

// Every row of the error table that the gateway answers, and every other status it gives by itself.
func TestErrorResponses(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	wrongMethod := func(allow string, headers ...string) response {
		return refusal(405, `{"code":"METHOD_NOT_ALLOWED","message":"This path does not have this method."}`,
			append(headers, "Allow", allow)...)
	}
	testKey := func() string { return apiKey(core.AddKey(network.Test)) }
	liveKey := func() string { return apiKey(core.AddKey(network.Live)) }
	revoked := core.AddKey(network.Test)
	core.Revoke(revoked)

	for name, test := range map[string]struct {
		raw  string
		want response
	}{
		"no key":                      {request("GET", "/v2/tokens", "", ""), noKey()},
		"no key, unknown path":        {request("GET", "/v2/nothing", "", ""), noKey()},
		"no key, path that begins so": {request("GET", "/v2", "", ""), noKey()},
		"no key, wrong method":        {request("PUT", "/v2/tokens", "", ""), noKey()},
		"no key, open path, POST":     {request("POST", "/v2/health", "", ""), noKey()},
		"cookie instead of a key":     {request("GET", "/v2/tokens", "Cookie: x-api-key="+revoked.Reveal()+"\r\n", ""), noKey()},
		"query instead of a key":      {request("GET", "/v2/tokens?api_key="+core.AddKey(network.Test).Reveal(), "", ""), noKey()},
		"x_api_key":                   {request("GET", "/v2/tokens", strings.Replace(testKey(), "x-api-key", "x_api_key", 1), ""), noKey()},
		"bearer token":                {request("GET", "/v2/tokens", "Authorization: Bearer "+core.AddKey(network.Test).Reveal()+"\r\n", ""), noKey()},
		"unknown key":                 {request("GET", "/v2/tokens", apiKey(apikey.New(network.Test)), ""), badKey()},
		"unknown key, unknown path":   {request("GET", "/v2/nothing", apiKey(apikey.New(network.Test)), ""), badKey()},
		"revoked key":                 {request("GET", "/v2/tokens", apiKey(revoked), ""), badKey()},
		"empty key":                   {request("GET", "/v2/tokens", "x-api-key:\r\n", ""), badKey()},
		"unknown path":                {request("GET", "/v2/nothing", testKey(), ""), notFound(fresh...)},
		"unknown path below a record": {request("GET", "/v2/transfers/1/2", testKey(), ""), notFound(fresh...)},
		"record without id":           {request("GET", "/v2/transfers/", testKey(), ""), notFound(fresh...)},
		"wrong method":                {request("POST", "/v2/tokens", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"wrong method on two":         {request("DELETE", "/v2/transfers", testKey(), ""), wrongMethod("GET, HEAD, POST", fresh...)},
		"HEAD on a keyed path":        {request("PUT", "/v2/transfers/1/cancel", testKey(), ""), wrongMethod("POST", fresh...)},
		"a batch has no GET there":    {request("GET", "/v2/transfers/batch", testKey(), ""), wrongMethod("POST", fresh...)},
		"a batch is read":             {request("POST", "/v2/batches/1", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"a batch's calls are read":    {request("POST", "/v2/batches/1/calls", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"a batch's report is posted":  {request("GET", "/v2/batches/1/transaction", testKey(), ""), wrongMethod("POST", fresh...)},
		"batches, no list":            {request("GET", "/v2/batches", testKey(), ""), notFound(fresh...)},
		"batch without id":            {request("GET", "/v2/batches/", testKey(), ""), notFound(fresh...)},
		"unknown path below a batch":  {request("GET", "/v2/batches/1/2", testKey(), ""), notFound(fresh...)},
		"a refund is read":            {request("POST", "/v2/transfers/1/refund", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"a preflight is read":         {request("POST", "/v2/transfers/1/preflight", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"events are read":             {request("POST", "/v2/events", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"an event is read":            {request("POST", "/v2/events/1", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"webhooks, DELETE":            {request("DELETE", "/v2/webhooks", testKey(), ""), wrongMethod("GET, HEAD, POST", fresh...)},
		"a webhook, POST":             {request("POST", "/v2/webhooks/1", testKey(), ""), wrongMethod("GET, HEAD, PATCH, DELETE", fresh...)},
		"a webhook, PUT":              {request("PUT", "/v2/webhooks/1", testKey(), ""), wrongMethod("GET, HEAD, PATCH, DELETE", fresh...)},
		"a secret is rotated":         {request("GET", "/v2/webhooks/1/rotate-secret", testKey(), ""), wrongMethod("POST", fresh...)},
		"a test is posted":            {request("PATCH", "/v2/webhooks/1/test", testKey(), ""), wrongMethod("POST", fresh...)},
		"a replay is posted":          {request("GET", "/v2/webhooks/1/replay", testKey(), ""), wrongMethod("POST", fresh...)},
		"deliveries are read":         {request("POST", "/v2/webhooks/1/deliveries", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"a delivery is read":          {request("POST", "/v2/webhooks/1/deliveries/2", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"a retry is posted":           {request("GET", "/v2/webhooks/1/deliveries/2/retry", testKey(), ""), wrongMethod("POST", fresh...)},
		"webhooks without a key":      {request("PATCH", "/v2/webhooks/1", "", ""), noKey()},
		"open path, POST with a key":  {request("POST", "/v2/health", testKey(), ""), wrongMethod("GET, HEAD", fresh...)},
		"open path, POST":             {request("POST", "/health", "", ""), wrongMethod("GET, HEAD")},
		"nothing there":               {request("GET", "/nothing", "", ""), notFound()},
		"links, POST":                 {request("POST", "/", "", ""), wrongMethod("GET, HEAD")},
		"upper case":                  {request("GET", "/V2/tokens", "", ""), notFound()},
		"internal API":                {request("GET", "/internal/chains", "", ""), notFound()},
		"docs, POST":                  {request("POST", "/docs", "", ""), wrongMethod("GET, HEAD")},
		"a page of the docs, POST":    {request("POST", "/docs/errors", "", ""), wrongMethod("GET, HEAD")},
		"other environment, test key": {request("POST", "/v2/transfers", testKey()+jsonType, transfer("eip155:1", "eip155:1")), refusal(403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","message":"Chain eip155:1 is a live chain and this is a test key; use a live key.","chainId":1,"keyEnv":"test"}`, fresh...)},
		"other environment, live key": {request("POST", "/v2/transfers", liveKey()+jsonType, transfer("eip155:11155111", "eip155:1")), refusal(403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","message":"Chain eip155:11155111 is a test chain and this is a live key; use a test key.","chainId":11155111,"keyEnv":"live"}`, fresh...)},
		"other environment, far leg":  {request("POST", "/v2/transfers", liveKey()+jsonType, transfer("eip155:1", "eip155:11155111")), refusal(403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","message":"Chain eip155:11155111 is a test chain and this is a live key; use a test key.","chainId":11155111,"keyEnv":"live"}`, fresh...)},
		"body that is not JSON":       {request("POST", "/v2/transfers", testKey()+jsonType, `{`), refusal(400, `{"code":"INVALID_REQUEST","message":"The request is not valid; see details.issues.","details":{"issues":[{"path":"","message":"is not one valid JSON object: it ends too early"}]}}`, fresh...)},
		"idempotency key with a tab, before a chain of the other environment": {
			request("POST", "/v2/transfers", testKey()+jsonType+"Idempotency-Key: a\tb\r\n", transfer("eip155:1", "eip155:1")),
			refusal(400, `{"code":"INVALID_REQUEST","message":"The request is not valid; see details.issues.","details":{"issues":[{"path":"Idempotency-Key","message":"must be given once, with 1 to 255 printable ASCII characters"}]}}`, fresh...),
		},
		"body without fields":           {request("POST", "/v2/transfers", testKey()+jsonType, `{}`), refusal(400, `{"code":"INVALID_REQUEST","message":"The request is not valid; see details.issues.","details":{"issues":[{"path":"/source","message":"is required"},{"path":"/destination","message":"is required"}]}}`, fresh...)},
		"body of another type":          {request("POST", "/v2/transfers", testKey()+"Content-Type: text/plain\r\n", `{}`), refusal(415, `{"code":"UNSUPPORTED_MEDIA_TYPE","message":"The body must be application/json in UTF-8."}`, fresh...)},
		"body without a type":           {request("POST", "/v2/transfers", testKey(), `{}`), refusal(415, `{"code":"UNSUPPORTED_MEDIA_TYPE","message":"The body must be application/json in UTF-8."}`, fresh...)},
		"body in another character set": {request("POST", "/v2/transfers", testKey()+"Content-Type: application/json; charset=latin1\r\n", `{}`), refusal(415, `{"code":"UNSUPPORTED_MEDIA_TYPE","message":"The body must be application/json in UTF-8."}`, fresh...)},
		"body over 16 KiB":              {request("POST", "/v2/transfers", testKey()+jsonType, strings.Repeat(" ", wire.MaxTransferRequestBytes+1)), refusal(413, `{"code":"PAYLOAD_TOO_LARGE","message":"The body must not be longer than 16384 bytes.","details":{"maxBytes":16384}}`, fresh...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := len(core.Requests())
			if diff := cmp.Diff(test.want, g.send(t, test.raw)); diff != "" {
				t.Error(diff)
			}
			if after := len(core.Requests()); after != before {
				t.Errorf("core received %d requests", after-before)
			}
		})
	}
}

// An error has the request's id that is its X-Request-Id: the client's, if it is safe to log.
func TestErrorResponses_RequestID(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil))
	send := func(path, id string) response { return g.send(t, request("GET", path, "X-Request-Id: "+id+"\r\n", "")) }
	want := response{Status: 404, Header: http.Header{
		"Cache-Control": {"no-store"}, "Content-Length": {"90"}, "Content-Type": {"application/json"}, "X-Request-Id": {"my.request-1"},
	}, Body: `{"code":"NOT_FOUND","message":"There is nothing at this path.","requestId":"my.request-1"}`}
	if diff := cmp.Diff(want, send("/nothing", "my.request-1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(notFound(), send("/nothing", `"unsafe"`)); diff != "" {
		t.Error(diff)
	}
}

// A core without its database answers from memory what the gateway asks of it, and is not ready.
func TestHealth_NoCoreReady(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.CoreSilence = 700 * time.Millisecond })
	status := func() int { return g.send(t, request("GET", "/v2/health", "", "")).Status }
	asynctest.Eventually(t, "a core is ready", func() bool { return status() == 204 })
	core.Draining.Store(true)
	asynctest.Eventually(t, "no core is ready", func() bool { return status() == 503 })
	core.Draining.Store(false)
	asynctest.Eventually(t, "a core is ready again", func() bool { return status() == 204 })
}

func TestHealth(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.CoreSilence = 700 * 1e6 })
	healthy := response{Status: 204, Header: http.Header{"Cache-Control": {"no-store"}}}
	for _, method := range []string{"GET", "HEAD"} {
		for _, path := range []string{"/health", "/v2/health"} {
			if diff := cmp.Diff(healthy, g.send(t, request(method, path, "", ""))); diff != "" {
				t.Errorf("%s %s: %s", method, path, diff)
			}
		}
	}
	core.FeedDown.Store(true)
	core.Events.Down.Store(true)
	core.ChainsDown.Store(true)
	asynctest.Eventually(t, "the silence is noticed", func() bool { return g.send(t, request("GET", "/health", "", "")).Status != 204 })
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"The service does not answer now. Try again shortly."}`, "Retry-After", "1")
	if diff := cmp.Diff(want, g.send(t, request("GET", "/health", "", ""))); diff != "" {
		t.Error(diff)
	}
	retrytest.HasJitter(t, func() string { return g.retryAfter(t) })
}
