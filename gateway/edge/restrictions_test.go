package edge_test

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// neededScopes are the scopes that the operations below /v2 need, empty for none.
var neededScopes = map[string]string{
	"GET /v2/tokens": "",
	"GET /v2/chains": "",
	"GET /v2/usage":  "",

	"GET /v2/transfers":                   "intents:read",
	"POST /v2/transfers":                  "intents:write",
	"GET /v2/transfers/{id}":              "intents:read",
	"POST /v2/transfers/{id}/transaction": "intents:write",
	"POST /v2/transfers/{id}/cancel":      "intents:write",
	"POST /v2/transfers/{id}/simulate":    "intents:write",
	"GET /v2/transfers/{id}/refund":       "intents:write",
	"GET /v2/transfers/{id}/preflight":    "intents:read",
	"GET /v2/transfers/{id}/relay":        "intents:write",
	"GET /v2/transfers/{id}/events":       "intents:read",
	"POST /v2/transfers/{id}/signature":   "intents:write",
	// A token does no more than its key, so that a key that only reads makes one that only reads.
	"POST /v2/transfers/{id}/client-token": "intents:read",
	"POST /v2/transfers/batch":             "intents:write",
	"GET /v2/batches/{id}":                 "intents:read",
	"GET /v2/batches/{id}/calls":           "intents:read",
	"POST /v2/batches/{id}/transaction":    "intents:write",
	"GET /v2/events":                       "intents:read",
	"GET /v2/events/{id}":                  "intents:read",
	"POST /v2/quotes":                      "intents:read",
	"GET /v2/origins":                      "intents:read",
	"PATCH /v2/origins":                    "intents:write",
	"GET /v2/quotes/{id}":                  "intents:read",

	"GET /v2/webhooks":         "webhooks",
	"POST /v2/webhooks":        "webhooks",
	"GET /v2/webhooks/{id}":    "webhooks",
	"PATCH /v2/transfers/{id}": "intents:write", "PATCH /v2/webhooks/{id}": "webhooks",
	"DELETE /v2/webhooks/{id}":                          "webhooks",
	"POST /v2/webhooks/{id}/rotate-secret":              "webhooks",
	"POST /v2/webhooks/{id}/test":                       "webhooks",
	"POST /v2/webhooks/{id}/replay":                     "webhooks",
	"GET /v2/webhooks/{id}/deliveries":                  "webhooks",
	"GET /v2/webhooks/{id}/deliveries/{eventId}":        "webhooks",
	"POST /v2/webhooks/{id}/deliveries/{eventId}/retry": "webhooks",
}

func lacksScope(scope string) response {
	return refusal(403, `{"code":"INSUFFICIENT_SCOPE","message":"This API key lacks the scope in details.scope. `+
		`Add it to the key's scopes, or use another key.","details":{"scope":"`+scope+`"}}`)
}

func outsideNetworks(address string) response {
	return refusal(403, `{"code":"NETWORK_NOT_ALLOWED","message":"This API key may not be used from your network. `+
		`Add the address in details.address to the key's networks, or use another key.","details":{"address":"`+address+`"}}`)
}

// Every operation that needs a key is tried with every set of scopes.
func TestScopes_EveryOperation(t *testing.T) {
	t.Parallel()
	neededScopes := maps.Clone(neededScopes)
	for operation, needed := range neededScopes {
		if pattern, reads := strings.CutPrefix(operation, "GET "); reads {
			neededScopes["HEAD "+pattern] = needed
		}
	}
	if diff := cmp.Diff(neededScopes, edge.NeededScopes()); diff != "" {
		t.Fatalf("scopes of the routes (-want +got):\n%s", diff)
	}
	core := coretest.Start(t, nil)
	g := start(t, core)
	for scopes := range apikey.AllScopes + 1 {
		t.Run(strings.Join(scopes.Names(), " "), func(t *testing.T) {
			t.Parallel()
			for operation, needed := range neededScopes {
				key := apikey.New(network.Test)
				core.Put(key, wire.VerifiedKey{Scopes: append([]string{"of:a-later-release"}, scopes.Names()...)})
				method, pattern, _ := strings.Cut(operation, " ")
				headers, body := apiKey(key), ""
				if method == "POST" || method == "PATCH" {
					headers, body = headers+jsonType+"Idempotency-Key: a\r\n", transfer("eip155:11155111", "eip155:11155111")
				}
				if pattern == "/v2/transfers/batch" {
					body = transferBatch(body)
				}
				target := strings.NewReplacer("{id}", "1", "{eventId}", "evt_1").Replace(pattern)
				got := g.send(t, request(method, target, headers, body))
				if needed == "" || scopes.Has(apikey.ScopeOf(needed)) {
					if got.Status != 200 {
						t.Errorf("%s: %+v", operation, got)
					}
					continue
				}
				want := lacksScope(needed)
				if method == "HEAD" {
					want = headOf(want)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", operation, diff)
				}
			}
		})
	}
}

// A key whose scopes are not named has them all. A path or method that no route has needs none, so that its
// answer is the same with every key.
func TestScopes_None(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for operation, scopes := range map[string][]string{
		"200 GET /v2/transfers": nil, "200 GET /v2/webhooks": nil, "404 GET /v2/nothing": {"webhooks"}, "404 POST /v2/transfers/1/2": {"webhooks"},
		"405 PUT /v2/transfers": {"webhooks"}, "405 HEAD /v2/transfers/1/cancel": {"webhooks"}, "403 HEAD /v2/transfers": {"webhooks"}, "405 OPTIONS /v2/transfers/1": {"webhooks"},
		"405 POST /v2/health": {"webhooks"}, "403 GET /v2/transfers": {"webhooks"},
	} {
		key := apikey.New(network.Test)
		core.Put(key, wire.VerifiedKey{Scopes: scopes})
		var want int
		var method, target string
		if _, err := fmt.Sscan(operation, &want, &method, &target); err != nil {
			t.Fatal(err)
		}
		if got := g.send(t, request(method, target, apiKey(key), "")); got.Status != want {
			t.Errorf("%s with %q: %+v", operation, scopes, got)
		}
	}
}

// A client is where the outermost trusted proxy says, and nowhere else.
func TestNetworks(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	direct := start(t, core)
	behind := start(t, core, func(s *settings) {
		s.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("2001:db8::/126")}
	})
	for _, test := range []struct {
		g                   *gateway
		networks, forwarded string
		// refused is the client's address where the request is refused.
		refused string
	}{
		{direct, "", "", ""},
		{direct, "127.0.0.1/32", "", ""},
		{direct, "127.0.0.0/8", "", ""},
		{direct, "0.0.0.0/0", "", ""},
		{direct, "10.0.0.0/8 127.0.0.1/32", "", ""},
		{direct, "127.0.0.2/32", "", "127.0.0.1"},
		{direct, "::/0", "", "127.0.0.1"},
		{direct, "::1/128 10.0.0.0/8", "", "127.0.0.1"},
		{direct, "10.0.0.0/8", "10.1.2.3", "127.0.0.1"},
		{direct, "127.0.0.1/32", "10.1.2.3", ""},

		{behind, "10.0.0.0/8", "10.1.2.3", ""},
		{behind, "10.0.0.0/8", "::ffff:10.1.2.3", ""},
		{behind, "10.0.0.0/8", "10.1.2.3, 127.0.0.9", ""},
		{behind, "10.0.0.0/8", "", "127.0.0.1"},
		{behind, "127.0.0.0/8", "", ""},
		{behind, "127.0.0.0/8", "10.1.2.3", "10.1.2.3"},
		{behind, "10.0.0.0/8", "10.1.2.3, 192.0.2.1", "192.0.2.1"},
		{behind, "10.0.0.0/8", "192.0.2.1, 10.1.2.3", ""},
		{behind, "10.0.0.0/8", "unknown", "127.0.0.1"},
		{behind, "2001:db8:1::/48", "2001:DB8:1::F", ""},
		{behind, "2001:db8:1::/48", "2001:db8:2::f", "2001:db8:2::f"},
		{behind, "2001:db8:1::/48", "2001:db8:1::f, 2001:db8::2", ""},
		{behind, "fe80::/10", "fe80::1%eth0", ""},
		{behind, "0.0.0.0/0", "2001:db8:1::f", "2001:db8:1::f"},
	} {
		key := apikey.New(network.Test)
		var networks []netip.Prefix
		for text := range strings.FieldsSeq(test.networks) {
			networks = append(networks, netip.MustParsePrefix(text))
		}
		core.Put(key, wire.VerifiedKey{Networks: networks})
		headers := apiKey(key)
		if test.forwarded != "" {
			headers += "X-Forwarded-For: " + test.forwarded + "\r\n"
		}
		before := len(core.Requests())
		got := test.g.send(t, request("GET", "/v2/tokens", headers, ""))
		if test.refused == "" {
			if got.Status != 200 {
				t.Errorf("%q from %q: %+v", test.networks, test.forwarded, got)
			}
			continue
		}
		if diff := cmp.Diff(outsideNetworks(test.refused), got); diff != "" {
			t.Errorf("%q from %q: %s", test.networks, test.forwarded, diff)
		}
		if heard := len(core.Requests()) - before; heard != 0 {
			t.Errorf("%q from %q: core is told of it", test.networks, test.forwarded)
		}
	}
}

// A key outside its networks learns nothing of its scopes or of paths, and neither refusal spends anything of the limit.
func TestRestrictions_RefusalNotCharged(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	as := core.Put(key, wire.VerifiedKey{
		KeyID: "restricted", LimitBucket: "7b6f8a52-0f2f-4e57-9f6e-2d3f5a0c9e11", Limit: wire.KeyLimit{Requests: 1, PeriodSeconds: 86400},
		Scopes: []string{"webhooks"}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	for _, target := range []string{"/v2/tokens", "/v2/transfers", "/v2/nothing"} {
		if diff := cmp.Diff(outsideNetworks("127.0.0.1"), g.send(t, request("GET", target, apiKey(key), ""))); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
	as.Networks = nil
	core.Put(key, as)
	want := lacksScope("intents:read")
	asynctest.Eventually(t, "the networks are gone", func() bool {
		return cmp.Diff(want, g.send(t, request("GET", "/v2/events", apiKey(key), ""))) == ""
	})
	if got := g.send(t, request("GET", "/v2/tokens", apiKey(key), "")); got.Status != 200 {
		t.Errorf("the one request that the limit allows: %+v", got)
	}
	usage := func() coretest.Counts { return core.Usage()["restricted"] }
	asynctest.Eventually(t, "the refusals are reported", func() bool { return usage().Refused >= 4 && usage().Accepted == 1 })
	if n := usage().Limited; n != 0 {
		t.Errorf("%d requests were limited", n)
	}
	for outcome, least := range map[string]float64{"network_refused": 1, "scope_refused": 0} {
		if got := g.value(t, "intents_gateway_requests_total "+outcome+" /v2/tokens"); got != least {
			t.Errorf("%s is counted %v times", outcome, got)
		}
	}
	if got := g.value(t, "intents_gateway_requests_total scope_refused /v2/events"); got < 1 {
		t.Errorf("scope_refused is counted %v times", got)
	}
}

// A request that waits for events reads nothing more with a key that may no longer read them from there.
func TestLongPoll_KeyChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(r reader)
		want   response
	}{
		"revoked": {func(r reader) { r.core.Revoke(r.key) }, refusal(403, badKeyBody)},
		"scope": {func(r reader) {
			r.core.Put(r.key, wire.VerifiedKey{AccountID: r.account, Scopes: []string{"intents:write"}})
		}, lacksScope("intents:read")},
		"network": {func(r reader) {
			r.core.Put(r.key, wire.VerifiedKey{AccountID: r.account, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		}, outsideNetworks("127.0.0.1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReader(t)
			c := r.park(t, "wait=25")
			test.change(r)
			// The gateway knows once it refuses another request.
			asynctest.Eventually(t, "the change holds", func() bool { return r.ask(t, "").read(t, "GET").Status == 403 })
			asked := r.core.Events.Asked.Load()
			r.add("a")
			test.want.Header.Set("Ratelimit", fresh[1])
			test.want.Header.Set("Ratelimit-Policy", fresh[3])
			mustRead(t, c, test.want)
			if n := r.core.Events.Asked.Load() - asked; n != 0 {
				t.Errorf("core was asked %d times more", n)
			}
		})
	}
}
