package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// refilled is the most tokens that 50 a minute can have given back since.
func refilled(began time.Time) int { return int(time.Since(began)/(1200*time.Millisecond)) + 1 }

func TestRateLimit_RetryAfter(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	c := g.dial(t)
	defer c.Close()
	ask := func() response {
		c.write(t, request("GET", "/v2/tokens", key, ""))
		return c.read(t, "GET")
	}
	began, passed := time.Now(), 0
	got := ask()
	for ; got.Status == 200; got = ask() {
		passed++
	}
	if most := 50 + refilled(began); passed < 50 || passed > most {
		t.Errorf("%d passed, want 50 to %d", passed, most)
	}
	wait := tryAgainIn(t, got)
	full := regexp.MustCompile(`^"default";r=0;t=(59|60), "account";r=9[0-9]+;t=[1-4]$`)
	if told := got.Header.Get("Ratelimit"); !full.MatchString(told) {
		t.Errorf("RateLimit: %s", told)
	}
	want := refusal(429, strings.Replace(got.Body, anyRequestID, "", 1), "Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)),
		"Ratelimit", got.Header.Get("Ratelimit"), "Ratelimit-Policy", defaultPolicy)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Refused requests spend nothing and do not move the time.
	ready := time.Now().Add(wait)
	again := false // on a machine so slow that the wait is over meanwhile
	for range 20 {
		if again = again || ask().Status == 200; again && time.Now().Before(ready) {
			t.Fatal("a request passed before the wait was over")
		}
	}
	<-time.After(time.Until(ready))
	if got := ask(); got.Status != 200 && !again {
		t.Errorf("after the wait: %+v", got)
	}
	if heard, most := len(core.Requests()), passed+1+refilled(ready); heard > most {
		t.Errorf("core received %d requests, at most %d passed", heard, most)
	}
}

var limitedBody = regexp.MustCompile(`^\{"code":"RATE_LIMITED","message":"Too many requests were made with this key. ` +
	`Wait as long as Retry-After says, then try again.","details":\{"tryAgainIn":([0-9]+)\}` + anyRequestID + `\}$`)

// tryAgainIn is what a 429 says, which for 50 a minute is at most one token's time.
func tryAgainIn(t *testing.T, r response) time.Duration {
	t.Helper()
	match := limitedBody.FindStringSubmatch(r.Body)
	if match == nil {
		t.Fatalf("not the body of a 429: %s", r.Body)
	}
	milliseconds, err := strconv.Atoi(match[1])
	if err != nil || milliseconds < 1 || milliseconds > 1200 {
		t.Errorf("tryAgainIn %s", match[1])
	}
	return time.Duration(milliseconds) * time.Millisecond
}

func TestRateLimit_ByKey(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 2, PeriodSeconds: 3600}})
	var got []string
	for range 3 {
		r := g.send(t, request("GET", "/v2/tokens", apiKey(key), ""))
		got = append(got, fmt.Sprint(r.Status, " ", r.Header.Get("Ratelimit-Policy"), " ", r.Header.Get("Retry-After")))
	}
	const policy = `"default";q=2;w=3600, "account";q=40;w=3600`
	want := []string{"200 " + policy + " ", "200 " + policy + " ", "429 " + policy + " 1800"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A refusal's body is built in a buffer of its connection; refusals that are pipelined have bodies of their own all the same.
func TestRateLimit_Pipelined(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	spent := func(requests, ofAccount int) string {
		key := apikey.New(network.Test)
		core.Put(key, wire.VerifiedKey{
			Limit: wire.KeyLimit{Requests: requests, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: ofAccount, PeriodSeconds: 86400},
		})
		one := request("GET", "/v2/tokens", apiKey(key), "")
		if got := g.send(t, one); got.Status != http.StatusOK {
			t.Fatalf("the first request: %+v", got)
		}
		return one
	}
	byKey, byAccount := spent(1, 2), spent(2, 1)
	c := g.dial(t)
	defer c.Close()
	c.write(t, byKey+byAccount+byKey)
	for _, whose := range []string{"this key", "all keys of this account", "this key"} {
		if got := c.read(t, "GET"); got.Status != http.StatusTooManyRequests || !strings.Contains(got.Body, "made with "+whose) || !json.Valid([]byte(got.Body)) {
			t.Errorf("answer: %+v, want a refusal of %s", got, whose)
		}
	}
}

func TestRateLimit_FallbackClosed(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) { s.RedisURL, s.LimitFallback = "redis://127.0.0.1:1/0", limit.Closed })
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Rate limits cannot be checked now. Try again shortly."}`, "Retry-After", "1")
	if diff := cmp.Diff(want, g.send(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))); diff != "" {
		t.Error(diff)
	}
}

// The keys of an account in one environment share its limit: both fields name it after the key's, and the 429 says that it was the
// account. A key of the other environment passes.
func TestRateLimit_Account(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	account := uuid.NewString()
	ask := func(env network.Environment) response {
		key := apikey.New(env)
		core.Put(key, wire.VerifiedKey{
			AccountID: account, Limit: wire.KeyLimit{Requests: 50, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: 2, PeriodSeconds: 86400},
		})
		return g.send(t, request("GET", "/v2/tokens", apiKey(key), ""))
	}
	for _, left := range []string{`"default";r=49;t=1728, "account";r=1;t=43200`, `"default";r=49;t=1728, "account";r=0;t=86400`} {
		if got := ask(network.Test); got.Status != http.StatusOK || got.Header.Get("Ratelimit") != left ||
			got.Header.Get("Ratelimit-Policy") != `"default";q=50;w=86400, "account";q=2;w=86400` {
			t.Errorf("%+v, want RateLimit %s", got, left)
		}
	}
	refused := ask(network.Test)
	body := regexp.MustCompile(`^\{"code":"RATE_LIMITED","message":"Too many requests were made with all keys of this account in this environment together. ` +
		`Wait as long as Retry-After says, then try again.","details":\{"tryAgainIn":[0-9]{8}\}` + anyRequestID + `\}$`)
	if wait, err := strconv.Atoi(refused.Header.Get("Retry-After")); refused.Status != http.StatusTooManyRequests || err != nil || wait < 43000 || wait > 43200 ||
		!body.MatchString(refused.Body) || refused.Header.Get("Ratelimit") != `"default";r=50;t=0, "account";r=0;t=86400` {
		t.Errorf("answer: %+v", refused)
	}
	if counted := g.value(t, "intents_gateway_requests_total account_rate_limited /v2/tokens"); counted != 1 {
		t.Errorf("%g refusals were counted as the account's", counted)
	}
	if got := ask(network.Live); got.Status != http.StatusOK {
		t.Errorf("a live key: %+v", got)
	}
}
