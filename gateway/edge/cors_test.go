package edge_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const shop = "https://shop.example"

// corsOf are the fields of a response that only browsers read.
func corsOf(r response) http.Header {
	fields := http.Header{}
	for name, values := range r.Header {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
			fields[name] = values
		}
	}
	return fields
}

// readableBy are the fields that let an origin read a response.
func readableBy(origin string) http.Header {
	return http.Header{
		"Access-Control-Allow-Origin": {origin}, "Access-Control-Expose-Headers": {"X-Request-Id, Retry-After, RateLimit, RateLimit-Policy"}, "Vary": {"Origin"},
	}
}

func originRefused() response {
	return refusal(403, `{"code":"ORIGIN_NOT_ALLOWED","message":"Pages of this origin may not use client tokens of the account. `+
		`Add it in the console or with PATCH /v2/origins."}`)
}

func TestCORS(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Origins: []string{"http://localhost:3000", shop}, Scopes: []string{"intents:read"}})
	read, report := tokenRequests[0], tokenRequests[4]
	expired := "Authorization: Bearer " + tokenOf(key, time.Now().Add(-time.Second)) + "\r\n"
	for name, test := range map[string]struct {
		what, headers string
		status        int
		want          http.Header
	}{
		"a listed origin":               {read, bearer(key) + "Origin: " + shop + "\r\n", 200, readableBy(shop)},
		"another one":                   {read, bearer(key) + "Origin: http://localhost:3000\r\n", 200, readableBy("http://localhost:3000")},
		"an error that a page can read": {report, bearer(key) + "Origin: " + shop + "\r\n", 403, readableBy(shop)},
		"no page":                       {read, bearer(key), 200, http.Header{}},
		"an expired token":              {read, expired + "Origin: https://other.example\r\n", 401, readableBy("*")},
		"a malformed token":             {read, "Authorization: Bearer ct_\r\nOrigin: https://other.example\r\n", 401, readableBy("*")},
		"an expired token elsewhere":    {"GET /v2/tokens", expired + "Origin: " + shop + "\r\n", 401, http.Header{}},
		"a token elsewhere":             {"GET /v2/tokens", bearer(key) + "Origin: " + shop + "\r\n", 403, http.Header{}},
		"a token of another intent":     {read + "0", bearer(key) + "Origin: https://other.example\r\n", 403, readableBy("*")},
		"a key":                         {read, apiKey(key) + "Origin: " + shop + "\r\n", 200, http.Header{}},
		"nothing":                       {read, "Origin: " + shop + "\r\n", 401, http.Header{}},
	} {
		got := g.ask(t, test.what, test.headers)
		if diff := cmp.Diff(test.want, corsOf(got)); diff != "" || got.Status != test.status {
			t.Errorf("%s: %d, want %d\n%s", name, got.Status, test.status, diff)
		}
	}
}

func foreignOriginsAreRefused(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Origins: []string{shop}})
	for _, origin := range []string{
		"null", "*", shop + ".com", shop + ":8443", shop + ":443", "http://shop.example", "HTTPS://SHOP.EXAMPLE", shop + "/", shop + " https://other.example",
		shop + "," + shop, "https://other.example", "shop.example",
	} {
		if diff := cmp.Diff(originRefused(), g.ask(t, tokenRequests[0], bearer(key)+"Origin: "+origin+"\r\n")); diff != "" {
			t.Errorf("%s: %s", origin, diff)
		}
	}
	if heard := core.Requests(); len(heard) != 0 {
		t.Errorf("core is told of %d requests", len(heard))
	}
}

// preflightOf is the header of a browser that asks for a page's request.
const preflightOf = "Origin: https://other.example\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: authorization\r\n"

func preflightsAreAnswered(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for target, method := range map[string]string{"/v2/transfers/1": "GET", "/v2/transfers/1/preflight": "GET", "/v2/transfers/1/transaction": "POST"} {
		want := response{Status: 204, Header: http.Header{
			"Cache-Control": {"no-store"}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Methods": {method}, "Access-Control-Max-Age": {"7200"},
			"Access-Control-Allow-Headers": {"Authorization, Content-Type, Idempotency-Key, X-Request-Id, Traceparent, Tracestate"},
		}}
		if diff := cmp.Diff(want, g.send(t, request("OPTIONS", target, preflightOf, ""))); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
	if heard, looked := len(core.Requests()), core.LookUps.Load(); heard != 0 || looked != 0 {
		t.Errorf("core received %d requests, and looked %d keys up", heard, looked)
	}
}

func otherOptionsAreNoPreflights(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	for what, want := range map[[2]string]int{
		{"/v2/transfers/1", ""}:                                       401,
		{"/v2/transfers/1", "Origin: " + shop + "\r\n"}:               401,
		{"/v2/transfers/1", "Access-Control-Request-Method: GET\r\n"}: 401,
		{"/v2/transfers/1", key + preflightOf}:                        405,
		{"/v2/transfers/1/cancel", preflightOf}:                       401,
		{"/v2/transfers/1/client-token", preflightOf}:                 401,
		{"/v2/transfers", preflightOf}:                                401,
		{"/v2/transfers/batch", preflightOf}:                          401,
		{"/v2/origins", preflightOf}:                                  401,
		{"/v2/nothing", preflightOf}:                                  401,
		{"/v2/health", preflightOf}:                                   401,
		{"/health", preflightOf}:                                      405,
		{"/auth/sign-out", preflightOf}:                               405,
		{"/console", preflightOf}:                                     405,
		{"/nothing", preflightOf}:                                     404,
	} {
		if got := g.send(t, request("OPTIONS", what[0], what[1], "")); got.Status != want || len(corsOf(got)) > 0 {
			t.Errorf("%q: %+v, want %d", what, got, want)
		}
	}
	if heard := core.Requests(); len(heard) != 0 {
		t.Errorf("core is told of %d requests", len(heard))
	}
}
