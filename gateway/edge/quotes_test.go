package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// quoteOf is a body of POST /v2/quotes between accounts of one chain with these amounts, empty for none.
func quoteOf(chain, source, destination string) string {
	amount := func(text string) string {
		if text == "" {
			return ""
		}
		return fmt.Sprintf(`,"amount":%q`, text)
	}
	return fmt.Sprintf(`{"source":{"account":"%s:%s","token":"%s:%s"%s},"destination":{"account":"%s:%s"%s}}`,
		chain, alice, chain, alice, amount(source), chain, bob, amount(destination))
}

const testnet, mainnet = "eip155:11155111", "eip155:1"

// Every status that the gateway itself answers a request for quotes with. What breaks two rules breaks the first in the order
// 413, 415, grammar, amounts, environment.
func TestQuotes_Refusals(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for name, test := range map[string]struct {
		headers, body string
		want          response
	}{
		"long and no JSON": {jsonType, strings.Repeat("x", wire.MaxQuoteRequestBytes+1), refusal(413, `{"code":"PAYLOAD_TOO_LARGE","message":"The body must not be longer than 16384 bytes.","details":{"maxBytes":16384}}`, fresh...)},
		"no type":          {"", `{`, refusal(415, `{"code":"UNSUPPORTED_MEDIA_TYPE","message":"The body must be application/json in UTF-8."}`, fresh...)},
		"no destination, no amount": {
			jsonType, `{"source":{"account":"` + mainnet + ":" + alice + `","token":"` + mainnet + ":" + alice + `"}}`,
			refusal(400, `{"code":"INVALID_REQUEST","message":"The request is not valid; see details.issues.","details":{"issues":[{"path":"/destination","message":"is required"}]}}`, fresh...),
		},
		"no amount, other environment": {
			jsonType, quoteOf(mainnet, "", ""),
			refusal(400, `{"code":"AMOUNT_REQUIRED","message":"The request has no amount. Give source.amount to quote what it brings, or destination.amount to quote what it costs."}`, fresh...),
		},
		"two amounts": {
			jsonType, quoteOf(testnet, "1", "1"),
			refusal(400, `{"code":"AMOUNTS_CONFLICT","message":"The request has both amounts. Leave out destination.amount to quote what source.amount brings, or source.amount to quote what destination.amount costs."}`, fresh...),
		},
		"other environment": {
			jsonType, quoteOf(mainnet, "", "1"),
			refusal(403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","message":"Chain eip155:1 is a live chain and this is a test key; use a live key.","chainId":1,"keyEnv":"test"}`, fresh...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := g.send(t, request("POST", "/v2/quotes", apiKey(core.AddKey(network.Test))+test.headers, test.body))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Cleanup(func() {
		if heard := core.Requests(); len(heard) > 0 {
			t.Errorf("core received %+v", heard)
		}
	})
}

// What is core's to judge is forwarded as it is: chains that only core knows, a query, and an intent that has a quote alone.
func TestQuotes_Forwarded(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Scopes: []string{"intents:read", "intents:write"}})
	const quoteID = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	for _, r := range []struct{ method, target, body string }{
		{"POST", "/v2/quotes", quoteOf(testnet, "1", "")},
		{"POST", "/v2/quotes", quoteOf("eip155:4242", "", "1")},
		{"POST", "/v2/quotes?x=1", quoteOf(mainnet, "", "")},
		{"GET", "/v2/quotes/" + quoteID, ""},
		{"POST", "/v2/transfers", `{"quoteId":"` + quoteID + `","reference":"inv-42"}`},
	} {
		headers := apiKey(key)
		if r.body != "" {
			headers += jsonType
		}
		if got := g.send(t, request(r.method, r.target, headers, r.body)); got.Status != 200 {
			t.Errorf("%s %s: %+v", r.method, r.target, got)
		}
		if last := core.Requests()[len(core.Requests())-1]; last.Target != r.target || last.Body != r.body {
			t.Errorf("%s %s: core heard %+v", r.method, r.target, last)
		}
	}
	for path, route := range map[string]string{
		"/v2/quotes": "/v2/quotes", "/v2/quotes/1": "/v2/quotes/{id}", "/v2/quotes/": "/v2/*", "/v2/quotes/1/2": "/v2/*",
	} {
		if got := edge.RouteOf([]byte(path)); got != route {
			t.Errorf("%s has the route %s", path, got)
		}
	}
}

// slowQuotes is a core that answers requests for quotes when it is released, and everything else at once.
type slowQuotes struct {
	*coretest.Core
	asked   atomic.Int64
	release chan struct{}
}

func startSlowQuotes(t *testing.T) *slowQuotes {
	t.Helper()
	s := &slowQuotes{release: make(chan struct{})}
	s.Core = coretest.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/quotes" {
			s.asked.Add(1)
			<-s.release
		}
	})
	return s
}

// ask sends a request for quotes that core is to hold.
func (s *slowQuotes) ask(t *testing.T, g *gateway, key apikey.Key) *clientConn {
	t.Helper()
	held := s.asked.Load()
	c := g.dial(t)
	t.Cleanup(func() { _ = c.Close() })
	c.write(t, request("POST", "/v2/quotes", apiKey(key)+jsonType, quoteOf(testnet, "1", "")))
	asynctest.Eventually(t, "core has the request", func() bool { return s.asked.Load() > held })
	return c
}

// However many quotes a key or an account asks for at once, others have connections to core, and it has them for other requests.
func TestQuotes_Bounds(t *testing.T) {
	t.Parallel()
	core := startSlowQuotes(t)
	g := start(t, core.Core)
	account, other := uuid.NewString(), uuid.NewString()
	keys := make([]apikey.Key, 4)
	for n, owner := range []string{account, account, account, other} {
		keys[n] = apikey.New(network.Test)
		core.Put(keys[n], wire.VerifiedKey{KeyID: fmt.Sprint("key ", n), LimitBucket: uuid.NewString(), AccountID: owner})
	}
	waiting := []*clientConn{core.ask(t, g, keys[0]), core.ask(t, g, keys[1]), core.ask(t, g, keys[3])}
	refused := func(key apikey.Key, message string) {
		t.Helper()
		got := g.send(t, request("POST", "/v2/quotes", apiKey(key)+jsonType, quoteOf(testnet, "1", "")))
		got.Header.Del("Ratelimit") // it depends on the time
		want := refusal(429, `{"code":"RATE_LIMITED","message":"`+message+`","details":{"tryAgainIn":3000}}`, "Retry-After", "3", "Ratelimit-Policy", defaultPolicy)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	refused(keys[0], "This key has as many requests for quotes in flight as it may have. Try again when one has been answered.")
	refused(keys[2], "Your account has as many requests for quotes in flight as it may have. Try again when one has been answered.")
	if got := g.send(t, request("GET", "/v2/quotes/1", apiKey(keys[0]), "")); got.Status != 200 {
		t.Errorf("a stored quote: %+v", got)
	}
	close(core.release)
	for n, c := range waiting {
		if got := c.read(t, "POST"); got.Status != 200 {
			t.Errorf("request %d: %+v", n, got)
		}
	}
	if got := g.send(t, request("POST", "/v2/quotes", apiKey(keys[2])+jsonType, quoteOf(testnet, "1", ""))); got.Status != 200 {
		t.Errorf("once the others are answered: %+v", got)
	}
	awaitUsage(t, core.Core, map[string]coretest.Counts{
		"key 0": {Accepted: 2, Limited: 1}, "key 1": {Accepted: 1}, "key 2": {Accepted: 1, Limited: 1}, "key 3": {Accepted: 1},
	})
}

func TestQuotes_TotalBound(t *testing.T) {
	t.Parallel()
	core := startSlowQuotes(t)
	g := start(t, core.Core, func(s *settings) { s.CoreMaxConns = 4 })
	c := core.ask(t, g, core.AddKey(network.Test))
	other := core.AddKey(network.Test)
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Too many requests for quotes are in flight for all accounts together. Try again shortly."}`,
		append(fresh, "Retry-After", "1")...)
	if diff := cmp.Diff(want, g.send(t, request("POST", "/v2/quotes", apiKey(other)+jsonType, quoteOf(testnet, "1", "")))); diff != "" {
		t.Error(diff)
	}
	close(core.release)
	if got := c.read(t, "POST"); got.Status != 200 {
		t.Errorf("the one that core had: %+v", got)
	}
}

// Core has the time to ask providers, however short GATEWAY_CORE_TIMEOUT is for other requests.
func TestQuotes_Timeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	core := coretest.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/quotes" {
			<-release
			return
		}
		<-r.Context().Done()
	})
	g := start(t, core, func(s *settings) { s.CoreTimeout = 300 * time.Millisecond })
	key := apiKey(core.AddKey(network.Test))
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("POST", "/v2/quotes", key+jsonType, quoteOf(testnet, "1", "")))
	asynctest.Eventually(t, "core has the request", func() bool { return len(core.Requests()) == 1 })
	if got := g.send(t, request("GET", "/v2/transfers/1", key, "")); got.Status != 504 {
		t.Errorf("a read: %+v", got)
	}
	close(release)
	if got := c.read(t, "POST"); got.Status != 200 {
		t.Errorf("quotes: %+v", got)
	}
}
