package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// The client is told the same of every bad key; the metrics and the log tell them apart.
func TestKeys_Outcomes(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	good, revoked := core.AddKey(network.Test), core.AddKey(network.Test)
	g := start(t, core)
	unknown := func() response {
		return g.send(t, request("GET", "/v2/tokens", apiKey(apikey.New(network.Test)), ""))
	}
	asynctest.Eventually(t, "the filter is loaded", func() bool { unknown(); return g.outcome(t, "unknown_key") > 0 })
	core.Revoke(revoked)
	badKey := refusal(http.StatusForbidden, badKeyBody)
	for _, test := range []struct {
		outcome, headers string
		want             response
	}{
		{"no_key", "", refusal(http.StatusUnauthorized, `{"code":"INVALID_API_KEY","message":"Send your API key in the x-api-key header."}`,
			"Www-Authenticate", `ApiKey header="x-api-key"`)},
		{"malformed_key", "x-api-key: sk_prod_1\r\n", badKey},
		{"unknown_key", apiKey(apikey.New(network.Test)), badKey},
		{"refused_key", apiKey(revoked), badKey},
		{"refused_key", apiKey(revoked), badKey}, // from the cache
	} {
		before := g.outcome(t, test.outcome)
		if diff := cmp.Diff(test.want, g.send(t, request("GET", "/v2/tokens", test.headers, ""))); diff != "" {
			t.Errorf("%s: %s", test.outcome, diff)
		}
		if got := g.outcome(t, test.outcome) - before; got != 1 {
			t.Errorf("%s is counted %g times", test.outcome, got)
		}
		if !strings.Contains(g.log.String(), `"outcome":"`+test.outcome+`"`) {
			t.Errorf("%s is not in the log", test.outcome)
		}
	}
	core.FeedDown.Store(true)
	want := refusal(http.StatusServiceUnavailable, `{"code":"SERVICE_UNAVAILABLE","message":"API keys cannot be checked now. Try again shortly."}`, "Retry-After", "1")
	if diff := cmp.Diff(want, unknown()); diff != "" {
		t.Error(diff)
	}
	if got := g.outcome(t, "keys_unavailable"); got != 1 {
		t.Errorf("keys_unavailable is counted %g times", got)
	}
	if got := g.send(t, request("GET", "/v2/tokens", apiKey(good), "")); got.Status != http.StatusOK {
		t.Errorf("a key that exists: %+v", got)
	}
}

// outcome is how often requests for tokens ended so.
func (g *gateway) outcome(t *testing.T, name string) float64 {
	t.Helper()
	return g.value(t, "intents_gateway_requests_total "+name+" /v2/tokens")
}

// A keyed route is never served without a verdict, even if a defect lets a request come so far.
func TestKeys_VerdictRequired(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	for _, path := range []string{"/v2/tokens", "/v2/transfers", "/v2/chains", "/v2/transfers/1", "/v2/events", "/v2/nothing"} {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI(path)
		g.Edge.ServeUnverified(&ctx)
		if status := ctx.Response.StatusCode(); status != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", path, status, ctx.Response.Body())
		}
	}
	if forwarded := core.Requests(); len(forwarded) != 0 {
		t.Errorf("%d requests were forwarded", len(forwarded))
	}
	if !strings.Contains(g.log.String(), "without a verdict") {
		t.Error("nothing is logged")
	}
}
