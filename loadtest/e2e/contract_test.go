package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/core/web/openapitest"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// openAPI is the contract that every client of this package holds the service to.
var openAPI = sync.OnceValues(func() (*openapitest.Contract, error) { return openapitest.Read("../../core/web/api/openapi.json") })

// checked is a transport that fails the test over every response that openapi.json does not describe.
type checked struct{ t *testing.T }

// connections are kept for as many clients as a test lets loose on one gateway, and for less time than a gateway keeps them.
var connections = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}

func (c checked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := connections.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	held, err := openAPI()
	if err != nil {
		return nil, err
	}
	for _, fault := range held.Faults(request, response, body) {
		c.t.Errorf("%s %s answered %d against openapi.json: %s", request.Method, request.URL.RequestURI(), response.StatusCode, fault)
	}
	return response, nil
}

// mustConform fails the test for a delivery that the document does not describe.
func mustConform(t *testing.T, d system.Delivery) {
	t.Helper()
	held := must(openAPI())(t)
	var body struct{ Type string }
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatalf("%v: %s", err, d.Body)
	}
	for _, fault := range held.DeliveryFaults(body.Type, d.Header, d.Body) {
		t.Errorf("%s was delivered against openapi.json: %s", body.Type, fault)
	}
}

// What the gateway answers by itself, or changes, is as openapi.json describes it; the tests of core's API hold the rest to it.
func TestContract_Gateway(t *testing.T) {
	journey(t)
	t.Parallel()
	key := freshKey(t)
	large := `"` + strings.Repeat("x", 17<<10) + `"`
	for _, e := range []struct {
		key, request string
		body         any
		header       []string
		want         string
	}{
		{"", "GET /v2/health", nil, nil, "204 "},
		{"", "HEAD /health", nil, nil, "204 "},
		{"", "POST /health", nil, nil, "405 METHOD_NOT_ALLOWED"},
		{"", "GET /v2/openapi.json", nil, []string{"Accept-Encoding", "gzip"}, "200 "},
		{"", "GET /openapi.json", nil, []string{"If-None-Match", "*"}, "304 "},
		{"", "HEAD /docs", nil, nil, "200 "},
		{"", "GET /nothing", nil, nil, "404 NOT_FOUND"},
		{"", "POST /auth/sign-up/email", large, nil, "413 PAYLOAD_TOO_LARGE"},
		{"", "GET /v2/tokens", nil, nil, "401 INVALID_API_KEY"},
		{apikey.New(network.Test).Reveal(), "GET /v2/tokens", nil, nil, "403 INVALID_API_KEY"},
		{key, "GET /v2/tokens", nil, []string{"Accept-Encoding", "zstd"}, "200 "},
		{key, "GET /v2/tokens", nil, []string{"If-None-Match", "*"}, "304 "},
		{key, "DELETE /v2/tokens", nil, nil, "405 METHOD_NOT_ALLOWED"},
		{key, "GET /v2/nothing", nil, nil, "404 NOT_FOUND"},
		{key, "POST /v2/transfers", large, nil, "413 PAYLOAD_TOO_LARGE"},
		{key, "POST /v2/transfers", payment("1"), []string{"Content-Type", "text/plain"}, "415 UNSUPPORTED_MEDIA_TYPE"},
		{key, "POST /v2/webhooks", large, nil, "413 PAYLOAD_TOO_LARGE"},
	} {
		method, path, _ := strings.Cut(e.request, " ")
		a := rawClient(t, shared.Stack.Env().GatewayURL, e.key).Do(method, path, e.body, e.header...)
		var refusal struct{ Code string }
		if a.Status >= http.StatusBadRequest {
			refusal = system.Expect[struct{ Code string }](t, a, a.Status)
		}
		if got := fmt.Sprint(a.Status, " ", refusal.Code); got != e.want {
			t.Errorf("%s %v: %s, want %s", e.request, e.header, got, e.want)
		}
	}
}
