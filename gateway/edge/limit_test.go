package edge_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/upstream/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

// refilled is the most tokens that 50 a minute can have given back since.
func refilled(began time.Time) int { return int(time.Since(began)/(1200*time.Millisecond)) + 1 }

func TestRateLimit_RetryAfter(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
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
	want := refusal(429, got.Body, "Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)),
		"Ratelimit", got.Header.Get("Ratelimit"), "Ratelimit-Policy", defaultPolicy)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Refused requests spend nothing and do not move the time.
	ready := time.Now().Add(wait)
	for range 20 {
		ask()
	}
	<-time.After(time.Until(ready))
	if got := ask(); got.Status != 200 {
		t.Errorf("after the wait: %+v", got)
	}
	if heard, most := len(core.Requests()), passed+1+refilled(ready); heard > most {
		t.Errorf("core received %d requests, at most %d passed", heard, most)
	}
}

var limitedBody = regexp.MustCompile(`^\{"code":"RATE_LIMITED","message":"Too many requests were made with this key. ` +
	`Wait as long as Retry-After says, then try again.","details":\{"tryAgainIn":([0-9]+)\}\}$`)

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

func TestRateLimit_SharedByGateways(t *testing.T) {
	t.Parallel()
	for name, inProcess := range map[string]bool{"redis": false, "miniredis": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{InProcess: inProcess})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = redis.Stop() })
			core := coretest.Start(t, nil)
			var gateways []*gateway
			for range 3 {
				gateways = append(gateways, start(t, core, settings{redisURL: redis.URL}))
			}
			raw := request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), "")
			began := time.Now()
			var passed, refused atomic.Int64
			var requests sync.WaitGroup
			for i := range 200 {
				requests.Go(func() {
					switch got := gateways[i%3].send(t, raw); got.Status {
					case http.StatusOK:
						passed.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					default:
						t.Errorf("answer: %+v", got)
					}
				})
			}
			requests.Wait()
			t.Logf("%d passed and %d were refused in %s", passed.Load(), refused.Load(), time.Since(began))
			if got, most := int(passed.Load()), 50+refilled(began); got < 50 || got > most {
				t.Errorf("%d passed, want 50 to %d", got, most)
			}
			if heard := len(core.Requests()); int64(heard) != passed.Load() {
				t.Errorf("core received %d requests, %d passed", heard, passed.Load())
			}
		})
	}
}

func TestRateLimit_ByKey(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
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

func TestRateLimit_FallbackClosed(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{redisURL: "redis://127.0.0.1:1/0", fallback: limit.Closed})
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Rate limits cannot be checked now. Try again shortly."}`, "Retry-After", "1")
	if diff := cmp.Diff(want, g.send(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), ""))); diff != "" {
		t.Error(diff)
	}
}

func TestKeys_RevokedOnEveryReplica(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	gateways := []*gateway{start(t, core, settings{}), start(t, core, settings{}), start(t, core, settings{})}
	key := core.AddKey(network.Test)
	raw := request("GET", "/v2/tokens", apiKey(key), "")
	for _, g := range gateways {
		if got := g.send(t, raw); got.Status != 200 {
			t.Fatalf("answer: %+v", got)
		}
	}
	core.Revoke(key)
	ended := time.Now()
	for _, g := range gateways {
		asynctest.Eventually(t, "the key is refused", func() bool {
			began := time.Now()
			got := g.send(t, raw)
			if late := began.Sub(ended); got.Status == 200 && late >= keys.MaxStaleness {
				t.Errorf("accepted %s after its end", late)
			}
			return got.Status == 403
		})
	}
}

// All keys of an account in one environment share its limit over all gateways: both fields name it after the key's, and the 429 says
// that it was the account. A key of the other environment passes.
func TestRateLimit_Account(t *testing.T) {
	t.Parallel()
	redis, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	core := coretest.Start(t, nil)
	gateways := []*gateway{start(t, core, settings{redisURL: redis.URL}), start(t, core, settings{redisURL: redis.URL}), start(t, core, settings{redisURL: redis.URL})}
	add := func(account string, env network.Environment) string {
		key := apikey.New(env)
		core.Put(key, wire.VerifiedKey{
			AccountID: account, Limit: wire.KeyLimit{Requests: 50, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: 120, PeriodSeconds: 86400},
		})
		return request("GET", "/v2/tokens", apiKey(key), "")
	}
	account := uuid.NewString()
	first := gateways[0].send(t, add(account, network.Test))
	if policy, left := first.Header.Get("Ratelimit-Policy"), first.Header.Get("Ratelimit"); policy != `"default";q=50;w=86400, "account";q=120;w=86400` ||
		left != `"default";r=49;t=1728, "account";r=119;t=720` {
		t.Errorf("RateLimit-Policy: %s, RateLimit: %s", policy, left)
	}
	var passed atomic.Int64
	var requests sync.WaitGroup
	var last string
	for n := range 20 {
		raw := add(account, network.Test)
		last = raw
		for i := range 10 {
			requests.Go(func() {
				if got := gateways[(n+i)%3].send(t, raw); got.Status == http.StatusOK {
					passed.Add(1)
				} else if got.Status != http.StatusTooManyRequests {
					t.Errorf("answer: %+v", got)
				}
			})
		}
	}
	requests.Wait()
	if passed.Load() != 119 {
		t.Errorf("%d passed after the first, want 119", passed.Load())
	}
	for _, g := range gateways {
		got := g.send(t, last)
		wait, err := strconv.Atoi(got.Header.Get("Retry-After"))
		body := regexp.MustCompile(`^\{"code":"RATE_LIMITED","message":"Too many requests were made with all keys of this account in this environment together. ` +
			`Wait as long as Retry-After says, then try again.","details":\{"tryAgainIn":[0-9]{6}\}\}$`)
		if got.Status != http.StatusTooManyRequests || err != nil || wait < 600 || wait > 720 || !body.MatchString(got.Body) ||
			!regexp.MustCompile(`^"default";r=[1-9][0-9]*;t=[0-9]+, "account";r=0;t=86[0-9]+$`).MatchString(got.Header.Get("Ratelimit")) {
			t.Errorf("answer: %+v", got)
		}
		if counted := g.value(t, `intents_gateway_requests_total{outcome="account_rate_limited",route="/v2/tokens"}`); counted < 1 {
			t.Errorf("%g refusals were counted as the account's", counted)
		}
	}
	if got := gateways[0].send(t, add(account, network.Live)); got.Status != http.StatusOK {
		t.Errorf("a live key: %+v", got)
	}
	if got := gateways[0].send(t, add(uuid.NewString(), network.Test)); got.Status != http.StatusOK {
		t.Errorf("another account: %+v", got)
	}
}
