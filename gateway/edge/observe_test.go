package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

func trustLoopback(s *settings) {
	s.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
}

func TestClientAddress_TrustedProxies(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, trustLoopback)
	key := apiKey(core.AddKey(network.Test))
	unreadable := func(header string) float64 {
		return metricstest.Values(t, g.Metrics)["intents_gateway_forwarded_unreadable_total "+header]
	}
	const warning = `"a proxy in GATEWAY_TRUSTED_PROXIES sends a value that cannot be read`
	for _, test := range []struct{ headers, address, proto string }{
		{"", "127.0.0.1", "http"},
		{"X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n", "198.51.100.7", "https"},
		{"X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.1.2.3\r\n", "198.51.100.7", "http"},
		{"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 198.51.100.7\r\n", "198.51.100.7", "http"},
		{"X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1", "http"},
		{"X-Forwarded-For: 198.51.100.7:5678\r\nX-Forwarded-Proto: HTTPS\r\n", "198.51.100.7", "https"},
		{"X-Forwarded-For: 203.0.113.9:1, [2001:db8::1]:443,10.1.2.3:80\r\n", "2001:db8::1", "http"},
		{"X-Forwarded-For: [2001:db8::1]\r\nX-Forwarded-Proto: http\r\n", "2001:db8::1", "http"},
	} {
		g.send(t, request("GET", "/v2/tokens", key+test.headers, ""))
		requests := core.Requests()
		heard := requests[len(requests)-1].Header
		want, got := []string{test.address, test.proto}, []string{heard.Get("X-Forwarded-For"), heard.Get("X-Forwarded-Proto")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", test.headers, diff)
		}
	}
	if n := unreadable("X-Forwarded-For") + unreadable("X-Forwarded-Proto"); n != 0 || strings.Contains(g.log.String(), warning) {
		t.Errorf("%g values are unreadable:\n%s", n, g.log.String())
	}
	for n, headers := range []string{
		"X-Forwarded-For: nonsense, 10.1.2.3\r\n", "X-Forwarded-For: 203.0.113.9, , 10.1.2.3\r\n", "X-Forwarded-For: 203.0.113.9, unix:, 10.1.2.3\r\nX-Forwarded-Proto: h2\r\n",
	} {
		g.send(t, request("GET", "/v2/tokens", key+headers, ""))
		requests := core.Requests()
		heard := requests[len(requests)-1].Header
		if got := heard.Get("X-Forwarded-For") + " " + heard.Get("X-Forwarded-Proto"); got != "10.1.2.3 http" || unreadable("X-Forwarded-For") != float64(n+1) {
			t.Errorf("%q: %s, and %g are counted", headers, got, unreadable("X-Forwarded-For"))
		}
	}
	if n := unreadable("X-Forwarded-Proto"); n != 1 || strings.Count(g.log.String(), warning) != 1 {
		t.Errorf("%g schemes are counted, want 1, with one line for all:\n%s", n, g.log.String())
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{KeyID: "the-key-id"})
	g.send(t, request("GET", "/v2/transfers/secret-path?secret=query", apiKey(key)+"X-Request-Id: r1\r\nUser-Agent: secret-agent\r\n", ""))
	var line map[string]any
	asynctest.Eventually(t, "the line is written", func() bool {
		for text := range strings.Lines(g.log.String()) {
			if strings.Contains(text, `"request"`) {
				return json.Unmarshal([]byte(text), &line) == nil
			}
		}
		return false
	})
	for _, volatile := range []string{"time", "duration_ms", "upstream_ms"} {
		if line[volatile] == nil {
			t.Errorf("the line has no %s", volatile)
		}
		delete(line, volatile)
	}
	want := map[string]any{
		"level": "INFO", "msg": "request", "request_id": "r1", "route": "/v2/transfers/{id}", "method": "GET", "status": 200.0,
		"outcome": "ok", "key_id": "the-key-id",
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
	hash := key.Hash()
	for _, secret := range []string{key.Reveal(), key.Start(), fmt.Sprintf("%x", hash[:]), "secret"} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	g.send(t, request("GET", "/v2/tokens", key, ""))
	g.send(t, request("GET", "/v2/tokens", key, ""))
	g.send(t, request("GET", "/v2/tokens", "", ""))
	g.send(t, "nonsense\r\n\r\n")
	for series, want := range map[string]float64{"ok /v2/tokens": 2, "no_key /v2/tokens": 1, "malformed_request unread": 1} {
		if got := g.value(t, "intents_gateway_requests_total "+series); got != want {
			t.Errorf("%s: %g, want %g", series, got, want)
		}
	}
	problems, err := testutil.GatherAndLint(g.Metrics)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "[]")
	})
	g := start(t, core)
	underway := g.dial(t)
	defer underway.Close()
	underway.write(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))
	<-arrived

	g.Edge.AnnounceDrain()
	if g.Edge.Draining(t.Context()) == nil {
		t.Error("readiness does not fail")
	}
	late := response{Status: 204, Header: http.Header{"Cache-Control": {"no-store"}, "Connection": {"close"}}}
	if diff := cmp.Diff(late, g.send(t, request("GET", "/health", "", ""))); diff != "" {
		t.Error(diff)
	}
	drained := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		drained <- g.Edge.Drain(ctx)
	}()
	close(release)
	want := unkept(response{Status: 200, Body: "[]", Header: http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"2"}, "Connection": {"close"},
		"Ratelimit": {fresh[1]}, "Ratelimit-Policy": {fresh[3]},
	}})
	if diff := cmp.Diff(want, underway.read(t, "GET")); diff != "" {
		t.Error(diff)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}
