package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// Each way a request can end is sent once with a key of its own, but for those that no usable key came with.
func TestUsage_Kinds(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/chains" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	g := start(t, core)
	accepted, limited, refused := coretest.Counts{Accepted: 1}, coretest.Counts{Limited: 1}, coretest.Counts{Refused: 1}
	testnet := transfer("eip155:11155111", "eip155:11155111")
	want := map[string]coretest.Counts{}
	for name, test := range map[string]struct {
		method, target, headers, body string
		status                        int
		want                          coretest.Counts
	}{
		"list":              {"GET", "/v2/tokens", "", "", 200, accepted},
		"core fails":        {"GET", "/v2/chains", "", "", 500, accepted},
		"transfer":          {"POST", "/v2/transfers", jsonType, testnet, 200, accepted},
		"batch of three":    {"POST", "/v2/transfers/batch", batchHeaders, batchOf(3), 200, accepted},
		"batch of 101":      {"POST", "/v2/transfers/batch", batchHeaders, batchOf(101), 422, refused},
		"batch's body":      {"POST", "/v2/transfers/batch", batchHeaders, "{", 400, refused},
		"path":              {"GET", "/v2/nothing", "", "", 404, refused},
		"method":            {"DELETE", "/v2/tokens", "", "", 405, refused},
		"method, open path": {"POST", "/v2/health", "", "", 405, refused},
		"environment":       {"POST", "/v2/transfers", jsonType, transfer("eip155:1", "eip155:1"), 403, refused},
		"body":              {"POST", "/v2/transfers", jsonType, "{", 400, refused},
		"media type":        {"POST", "/v2/transfers", "", "{}", 415, refused},
		"body over 16 KiB":  {"POST", "/v2/transfers", jsonType, strings.Repeat(" ", 20<<10), 413, refused},
		"limit":             {"GET", "/v2/tokens", "", "", 429, limited},
	} {
		key := apikey.New(network.Test)
		as := wire.VerifiedKey{KeyID: name, LimitBucket: uuid.NewString()} // Redis outlasts the test
		if test.status == 429 {
			as.Limit = wire.KeyLimit{Requests: 1, PeriodSeconds: 86400}
		}
		core.Put(key, as)
		if test.status == 429 {
			g.send(t, request("GET", "/v2/tokens", apiKey(key), ""))
			test.want.Accepted++
		}
		if got := g.send(t, request(test.method, test.target, apiKey(key)+test.headers, test.body)); got.Status != test.status {
			t.Errorf("%s: %+v", name, got)
		}
		want[name] = test.want
	}
	open := core.AddKey(network.Test)
	g.send(t, request("GET", "/v2/tokens", apiKey(apikey.New(network.Test)), "")) // unknown
	g.send(t, request("GET", "/health", apiKey(open), ""))                        // no key asked for
	g.send(t, request("GET", "/v2/tokens", apiKey(open)+apiKey(open), ""))        // unclear
	askFirst := apikey.New(network.Test)
	want["asked first"] = accepted
	core.Put(askFirst, wire.VerifiedKey{KeyID: "asked first"})
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("POST", "/v2/transfers", apiKey(askFirst)+jsonType+"Expect: 100-continue\r\n", testnet))
	for _, status := range []int{100, 200} {
		answer, err := http.ReadResponse(c.reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != status {
			t.Fatalf("want %d: %+v", status, answer)
		}
	}
	awaitUsage(t, core, want)
}

// awaitUsage waits until the reports add up to just this.
func awaitUsage(t *testing.T, core *coretest.Core, want map[string]coretest.Counts) {
	t.Helper()
	t.Cleanup(func() {
		if diff := cmp.Diff(want, core.Usage()); diff != "" {
			t.Errorf("usage reported (-want +got):\n%s", diff)
		}
	})
	asynctest.Eventually(t, "all is reported", func() bool { return len(core.Usage()) >= len(want) && cmp.Diff(want, core.Usage()) == "" })
}

// Refusals by the limiter itself count as refused, and what core never got as accepted: the gateway had let it pass.
func TestUsage_CoreAndRedisDown(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	broken := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{KeyID: "core broke off"})
	broken.send(t, request("POST", "/v2/transfers/1/cancel", apiKey(key), ""))

	unlimited := start(t, core, func(s *settings) { s.RedisURL, s.LimitFallback = "redis://127.0.0.1:1/0", limit.Closed })
	key = apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{KeyID: "no limiter"})
	unlimited.send(t, request("GET", "/v2/tokens", apiKey(key), ""))

	want := map[string]coretest.Counts{"core broke off": {Accepted: 1}, "no limiter": {Refused: 1}}
	awaitUsage(t, core, want)
}
