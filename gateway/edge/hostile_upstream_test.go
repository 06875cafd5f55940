package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/wire"
)

var upstreamRules = []rule{
	{
		input: "Core has closed the connection that a request goes out on", shown: coreClosedIdleConnections,
		answer: "a read is sent again, once; so is a `POST` of `/v2/transfers`, `/v2/transfers/batch` or `/v2/webhooks` with an `Idempotency-Key`; any other write is carried out at most once",
	},
	{
		input: "Core reads a request and closes", shown: coreHangsUp,
		answer: "503, for a write but `POST /v2/quotes` `OUTCOME_UNKNOWN`; core gets a read twice at most, and a `POST` of `/v2/transfers`, `/v2/transfers/batch` or `/v2/webhooks` with an `Idempotency-Key`; any other write once",
	},
	{input: "Core hangs", answer: "504 at the deadline, for a write but `POST /v2/quotes` `OUTCOME_UNKNOWN`; core gets the request once", shown: coreHangs},
	{input: "Redis hangs, is down, or has lost its scripts", answer: "no error, hardly later, and a metric tells", shown: redisFails},
	{input: "A panic in the gateway", answer: "500, and the next request is served", shown: panicIsAnswered},
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// What the gateway tells of a write that core may have carried out.
const (
	mayHaveHappened = "the request may have been carried out. Look for what it would have made or changed before you repeat it; repeat a write with the same Idempotency-Key only."
	happensOnce     = "the request may have been carried out. Repeat it with the same Idempotency-Key, which carries it out at most once."
)

func coreHangsUp(t *testing.T) {
	t.Helper()
	t.Parallel()
	body := transfer("eip155:11155111", "eip155:11155111")
	for name, test := range map[string]struct {
		method, path, headers, body string
		hits                        int
	}{
		"GET of a list":                          {"GET", "/v2/tokens", "", "", 2},
		"GET of a record":                        {"GET", "/v2/transfers/1", "", "", 2},
		"POST":                                   {"POST", "/v2/transfers", jsonType, body, 1},
		"POST with Idempotency-Key":              {"POST", "/v2/transfers", jsonType + "Idempotency-Key: a\r\n", body, 2},
		"POST of a batch":                        {"POST", "/v2/transfers/batch", jsonType + "Idempotency-Key: a\r\n", transferBatch(body), 2},
		"POST of a batch's transaction":          {"POST", "/v2/batches/1/transaction", jsonType + "Idempotency-Key: a\r\n", "{}", 1},
		"POST without a body":                    {"POST", "/v2/transfers/1/cancel", "", "", 1},
		"POST of a webhook with Idempotency-Key": {"POST", "/v2/webhooks", jsonType + "Idempotency-Key: a\r\n", "{}", 2},
		"GET of webhooks":                        {"GET", "/v2/webhooks", "", "", 2},
		"POST for quotes":                        {"POST", "/v2/quotes", jsonType + "Idempotency-Key: a\r\n", body, 1},
		"PATCH with Idempotency-Key":             {"PATCH", "/v2/webhooks/1", jsonType + "Idempotency-Key: a\r\n", "{}", 1},
		"DELETE with Idempotency-Key":            {"DELETE", "/v2/webhooks/1", "Idempotency-Key: a\r\n", "", 1},
		"POST of a session":                      {"POST", "/auth/sign-out", "", "", 1},
		// Core honors the key on these three paths alone.
		"POST of a new key with Idempotency-Key":      {"POST", "/auth/api-key/create", jsonType + "Idempotency-Key: a\r\n", `{"name":"a"}`, 1},
		"POST of a cancellation with Idempotency-Key": {"POST", "/v2/transfers/1/cancel", "Idempotency-Key: a\r\n", "", 1},
		"POST of a transaction with Idempotency-Key":  {"POST", "/v2/transfers/1/transaction", jsonType + "Idempotency-Key: a\r\n", "{}", 1},
		"POST that looks like a retry":                {"POST", "/v2/transfers", jsonType + "X-Idempotency-Key: a\r\nIdempotency_Key: a\r\n", body, 1},
		"POST that only names the header":             {"POST", "/v2/transfers/1/cancel", "Connection: Idempotency-Key\r\n", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, hangUp)
			g := start(t, core)
			key := ""
			if strings.HasPrefix(test.path, "/v2/") {
				key = apiKey(core.AddKey(network.Test))
			}
			want := refusal(503, `{"code":"OUTCOME_UNKNOWN","message":"The service broke off while it answered; `+mayHaveHappened+`"}`)
			switch {
			case test.method == "GET", test.path == "/v2/quotes":
				want = refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"The service broke off while it answered. Try again shortly."}`, "Retry-After", "1")
			case test.hits == 2:
				want = refusal(503, `{"code":"OUTCOME_UNKNOWN","message":"The service broke off while it answered; `+happensOnce+`"}`, "Retry-After", "1")
			}
			got := g.send(t, request(test.method, test.path, key+test.headers, test.body))
			got.Header.Del("Ratelimit")
			got.Header.Del("Ratelimit-Policy")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got := len(core.Take()); got != test.hits {
				t.Errorf("core was asked %d times, want %d", got, test.hits)
			}
		})
	}
}

// Core closes every connection while it is idle, and the next request may go out on one before the gateway knows.
func coreClosedIdleConnections(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	putRowKey(core)
	for _, path := range []string{"/v2/tokens", "/v2/transfers/1"} {
		for range 10 {
			if got := g.send(t, request("GET", path, withKey, "")); got.Status != 200 {
				t.Errorf("%s: %+v", path, got)
			}
			core.CloseConnections()
		}
	}
	core.Take()
	passed, failed := 0, 0
	for i := range 20 {
		got := g.send(t, request("POST", "/v2/transfers/1/cancel", withKey+fmt.Sprintf("X-Request-Id: r%d\r\n", i), ""))
		switch got.Status {
		case 200:
			passed++
		case 503:
			failed++
		default:
			t.Errorf("%+v", got)
		}
		hits := core.Take()
		if len(hits) > 1 || got.Status == 200 && len(hits) != 1 {
			t.Errorf("answered %d, core was asked %d times", got.Status, len(hits))
		}
		core.CloseConnections()
	}
	t.Logf("of 20 writes just after core closed, %d passed and %d failed unsent", passed, failed)
}

func coreHangs(t *testing.T) {
	t.Helper()
	t.Parallel()
	release := make(chan struct{})
	core := coretest.Start(t, func(http.ResponseWriter, *http.Request) { <-release })
	const deadline = 300 * time.Millisecond
	g := start(t, core, func(s *settings) { s.CoreTimeout = deadline })
	t.Cleanup(func() { close(release) })
	body := transfer("eip155:11155111", "eip155:11155111")
	read := refusal(504, `{"code":"UPSTREAM_TIMEOUT","message":"The service did not answer in time. Try again."}`, fresh...)
	unknown := refusal(504, `{"code":"OUTCOME_UNKNOWN","message":"The service did not answer in time; `+mayHaveHappened+`"}`, fresh...)
	once := refusal(504, `{"code":"OUTCOME_UNKNOWN","message":"The service did not answer in time; `+happensOnce+`"}`, append(fresh, "Retry-After", "1")...)
	for _, test := range []struct {
		method, path, headers, body string
		want                        response
	}{
		{"GET", "/v2/tokens", "", "", read},
		{"GET", "/v2/transfers/1", "", "", read},
		{"POST", "/v2/transfers", jsonType, body, unknown},
		{"POST", "/v2/transfers", jsonType + "Idempotency-Key: a\r\n", body, once},
		{"POST", "/v2/transfers/batch", jsonType + "Idempotency-Key: a\r\n", transferBatch(body), once},
		{"POST", "/v2/batches/1/transaction", jsonType + "Idempotency-Key: a\r\n", "{}", unknown},
		{"POST", "/v2/transfers/1/cancel", "Idempotency-Key: a\r\n", "", unknown},
	} {
		began := time.Now()
		if diff := cmp.Diff(test.want, g.send(t, request(test.method, test.path, apiKey(core.AddKey(network.Test))+test.headers, test.body))); diff != "" {
			t.Errorf("%s %s: %s", test.method, test.path, diff)
		}
		// A busy machine may be late, but nothing may be early.
		took := time.Since(began)
		t.Logf("%s %s: answered after %s of %s", test.method, test.path, took.Round(time.Millisecond), deadline)
		if took < deadline || took > 10*time.Second {
			t.Errorf("%s %s took %s", test.method, test.path, took)
		}
		if hits := len(core.Take()); hits != 1 {
			t.Errorf("%s %s was sent %d times", test.method, test.path, hits)
		}
	}
}

func panicIsAnswered(t *testing.T) {
	t.Helper()
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.edge = func(e *edge.Edge) { e.SetLimiter(nil) } })
	want := refusal(500, `{"code":"INTERNAL_ERROR","message":"The gateway failed; the request may have been carried out. Repeat a write with the same Idempotency-Key only."}`)
	c := g.dial(t)
	defer c.Close()
	key := apiKey(core.AddKey(network.Test))
	for range 2 {
		c.write(t, request("GET", "/v2/transfers/1", key, ""))
		if diff := cmp.Diff(want, c.read(t, "GET")); diff != "" {
			t.Error(diff)
		}
	}
	c.write(t, request("GET", "/nothing", "", "")) // without an upstream there is no health either
	if got := c.read(t, "GET"); got.Status != 404 {
		t.Errorf("after the panics: %+v", got)
	}
	if !strings.Contains(g.log.String(), `"msg":"request handler panicked"`) {
		t.Error("the log does not tell")
	}
}

// redisFails has Redis fail after 20 of 120 requests. The promise is 100 ms more at most for one request; a busy machine is
// given 2 s, and the log has what was measured.
func redisFails(t *testing.T) {
	t.Helper()
	t.Parallel()
	for name, test := range map[string]struct {
		fail     func(*testing.T, *embedded.Redis, *faultproxy.Proxy)
		degraded float64
	}{
		"hangs":                {func(_ *testing.T, _ *embedded.Redis, s *faultproxy.Proxy) { s.BlackHole() }, 1},
		"is down":              {func(_ *testing.T, _ *embedded.Redis, s *faultproxy.Proxy) { s.Refuse() }, 1},
		"has lost its scripts": {flushScripts, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Stop() })
			options, err := redis.ParseURL(r.URL)
			if err != nil {
				t.Fatal(err)
			}
			proxy := faultproxy.Start(t, options.Addr)
			core := coretest.Start(t, nil)
			g := start(t, core, func(s *settings) {
				s.RedisURL, s.LimitBudget, s.LimitFallback = telemetry.Secret("redis://"+proxy.Address), 50*time.Millisecond, limit.Local
			})
			key := apikey.New(network.Test)
			core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 50, PeriodSeconds: 86400}}) // none comes back meanwhile
			c := g.dial(t)
			defer c.Close()
			statuses := map[int]int{}
			var slowest time.Duration
			for i := range 120 {
				if i == 20 {
					test.fail(t, r, proxy)
				}
				began := time.Now()
				c.write(t, request("GET", "/v2/tokens", apiKey(key), ""))
				statuses[c.read(t, "GET").Status]++
				slowest = max(slowest, time.Since(began))
			}
			t.Logf("statuses %v, slowest request %s", statuses, slowest)
			// The bucket goes on from where Redis left it. Where the machine is so busy that Redis seemed late before, what passed
			// then is not known to Redis, and as much may pass again.
			if statuses[200] < 50 || statuses[200] > 100 || statuses[200]+statuses[429] != 120 {
				t.Errorf("statuses %v", statuses)
			}
			if slowest > 2*time.Second {
				t.Errorf("a request took %s", slowest)
			}
			asynctest.Eventually(t, "the metric tells", func() bool {
				c.write(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))
				return c.read(t, "GET").Status == 200 && g.value(t, "intents_gateway_limit_degraded") == test.degraded
			})
		})
	}
}

func flushScripts(t *testing.T, r *embedded.Redis, _ *faultproxy.Proxy) {
	t.Helper()
	options, err := redis.ParseURL(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}
