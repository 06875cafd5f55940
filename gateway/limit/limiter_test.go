package limit_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/topology"
)

var fiftyAMinute = tokenbucket.Per(50, time.Minute)

// generous is a budget that a busy machine keeps; what is tested is not the time.
const generous = 5 * time.Second

// copies is how many copies of buckets a limiter may have: more than a benchmark has keys.
const copies = 2 * benchKeys

type limiter struct {
	*limit.Limiter
	redis    redis.UniversalClient
	registry *prometheus.Registry
	log      *bytes.Buffer
}

func newLimiter(tb testing.TB, url string, budget time.Duration, fallback limit.Fallback) limiter {
	tb.Helper()
	return newLimiterOn(tb, topology.Single, url, budget, fallback)
}

func newLimiterOn(tb testing.TB, mode topology.Mode, url string, budget time.Duration, fallback limit.Fallback) limiter {
	tb.Helper()
	client, err := limit.NewRedis(mode, url, budget)
	if err != nil {
		tb.Fatal(err)
	}
	l := limiter{redis: client, registry: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	l.Limiter = limit.New(limit.Options{
		Redis:    client,
		Budget:   budget,
		Fallback: fallback,
		Capacity: copies,
		Log:      slog.New(slog.NewJSONHandler(l.log, nil)),
		Metrics:  l.registry,
	})
	tb.Cleanup(func() {
		l.Close()
		_ = client.Close()
	})
	return l
}

// startRedis runs a private Redis, the real one or the one in this process.
func startRedis(tb testing.TB, inProcess bool) *embedded.Redis {
	tb.Helper()
	r, err := embedded.StartRedis(tb.Context(), embedded.RedisConfig{InProcess: inProcess})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Stop() })
	if !inProcess && r.PID() == 0 && os.Getenv("CI") == "true" {
		tb.Fatal("no redis-server or valkey-server on PATH: this test wants a real one")
	}
	return r
}

func onBoth(t *testing.T, test func(*testing.T, *embedded.Redis)) {
	t.Helper()
	for name, inProcess := range map[string]bool{"redis": false, "miniredis": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, startRedis(t, inProcess))
		})
	}
}

// accountOf is the account's bucket of a key that is alone in its account, whose limit is 20 times the key's.
func accountOf(name string, rule tokenbucket.Rule) tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: "account:" + name, Rule: tokenbucket.Rule{Rate: 20 * rule.Rate, Burst: 20 * rule.Burst, Period: rule.Period}}
}

// hashOf is the key of the hash that a Cluster has for a key that is alone in its account.
func hashOf(name string) string { return tokenbucket.AccountHash("account:" + name) }

// Take takes from the buckets of a key that is alone in its account.
func (l limiter) Take(name string, rule tokenbucket.Rule, now time.Time) (limit.Decision, error) {
	return l.Limiter.Take(tokenbucket.Bucket{Name: name, Rule: rule}, accountOf(name, rule), 1, new(limit.Refusals), now)
}

// charged is how many requests the bucket of a key that is alone in its account has been charged, and has not got back.
func (l limiter) charged(t *testing.T, name string, rule tokenbucket.Rule) int {
	t.Helper()
	full, err := tokenbucket.Full(t.Context(), l.redis, "account:"+name, name)
	if err != nil {
		t.Fatal(err)
	}
	now := float64(time.Now().UnixMicro())/1e6 - tokenbucket.Epoch
	return int(math.Round(max(0, full[0]-now) / rule.Period.Seconds() * float64(rule.Rate)))
}

func (l limiter) take(t *testing.T, name string, rule tokenbucket.Rule) limit.Decision {
	t.Helper()
	d, err := l.Take(name, rule, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLimiter_FiftyAMinute(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *embedded.Redis) {
		t.Helper()
		l, name := newLimiter(t, r.URL, generous, limit.Closed), uuid.NewString()
		began := time.Now()
		passed := 0
		d := l.take(t, name, fiftyAMinute)
		for ; d.Allowed; d = l.take(t, name, fiftyAMinute) {
			passed++
		}
		if most := 50 + refilled(began); passed < 50 || passed > most {
			t.Errorf("%d passed, want 50 to %d", passed, most)
		}
		if d.RetryAfter <= 0 || d.RetryAfter > 1200*time.Millisecond || d.Remaining != 0 || d.Rule != fiftyAMinute {
			t.Errorf("refusal: %+v", d)
		}
		if d.ResetAfter < 58*time.Second || d.ResetAfter > time.Minute {
			t.Errorf("refusal says the bucket is full in %s", d.ResetAfter)
		}
		// Refused requests spend nothing: the time told at first still holds after many of them.
		ready := time.Now().Add(d.RetryAfter)
		for range 50 {
			if d := l.take(t, name, fiftyAMinute); d.Allowed && time.Now().Before(ready.Add(-10*time.Millisecond)) {
				t.Fatal("passed too early")
			}
		}
		<-time.After(time.Until(ready))
		if d := l.take(t, name, fiftyAMinute); !d.Allowed {
			t.Errorf("refused after the wait: %+v", d)
		}
	})
}

// refilled is how many tokens the bucket may have got back since.
func refilled(began time.Time) int { return int(time.Since(began)/(1200*time.Millisecond)) + 1 }

func TestLimiter_CachedRefusal(t *testing.T) {
	t.Parallel()
	l, name := newLimiter(t, startRedis(t, false).URL, generous, limit.Closed), uuid.NewString()
	for l.take(t, name, fiftyAMinute).Allowed {
	}
	var asked callCounter
	l.redis.AddHook(&asked)
	for range 100 {
		l.take(t, name, fiftyAMinute)
	}
	// A token may come back meanwhile, and the next refusal must then be asked for.
	if calls := asked.calls.Load(); calls > 4 {
		t.Errorf("%d calls for 100 refusals", calls)
	}
	// A raised limit counts at once: Redis is asked again, and names the shorter time of one of its tokens.
	if d := l.take(t, name, tokenbucket.Per(500, time.Minute)); d.RetryAfter > 120*time.Millisecond {
		t.Errorf("refused by memory under the raised limit: %+v", d)
	}
}

// callCounter counts what is asked of Redis.
type callCounter struct{ calls atomic.Int64 }

func (c *callCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *callCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.calls.Add(1)
		return next(ctx, cmd)
	}
}

func (c *callCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.calls.Add(1)
		return next(ctx, cmds)
	}
}
