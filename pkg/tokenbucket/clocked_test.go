package tokenbucket_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/tokenbucket"
)

var (
	// previousSource is the script of the release before the hashes, and keysOnlySource that of the release before accounts' buckets.
	//
	//go:embed testdata/previous.lua
	previousSource string
	//go:embed testdata/keys_only.lua
	keysOnlySource string
)

// clocked is a Redis whose scripts read the clock of the test.
type clocked struct {
	t           *testing.T
	client      *redis.Client
	now         time.Time
	fastForward func(time.Duration)
}

// onEach runs a test on Redis, which has struct in Lua, and on miniredis, which has not.
func onEach(t *testing.T, test func(t *testing.T, start func(*testing.T) *clocked)) {
	t.Helper()
	start := func(t *testing.T, url string, fastForward func(time.Duration)) *clocked {
		t.Helper()
		options, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		options.Protocol = 2
		c := &clocked{t: t, client: redis.NewClient(options), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), fastForward: fastForward}
		t.Cleanup(func() { _ = c.client.Close() })
		return c
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T) *clocked {
			t.Helper()
			r, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Stop() })
			return start(t, r.URL, func(time.Duration) {})
		})
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T) *clocked {
			t.Helper()
			server := miniredis.RunT(t)
			return start(t, "redis://"+server.Addr(), server.FastForward)
		})
	})
}

// pass moves the clock.
func (c *clocked) pass(d time.Duration) {
	c.t.Helper()
	c.now = c.now.Add(d)
	c.fastForward(max(0, d))
}

func (c *clocked) run(source string, keys []string, args ...any) []int64 {
	c.t.Helper()
	source = strings.Replace(source, `redis.call("TIME")`, fmt.Sprintf("{%d, %d}", c.now.Unix(), c.now.Nanosecond()/1000), 1)
	reply, err := c.client.Eval(c.t.Context(), source, keys, args...).Int64Slice()
	if err != nil {
		c.t.Fatal(err)
	}
	return reply
}

// request is a request with a key of an account, by the names of their buckets.
type request struct{ key, account string }

// takeBoth takes from the buckets of keys and of accounts: two numbers for each request.
func (c *clocked) takeBoth(key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	return c.run(tokenbucket.Source(), []string{tokenbucket.Current, tokenbucket.Previous}, append(arguments(key, account, requests), "began", "mirror_until")...)
}

// takeOnCluster is takeBoth for requests of one account, in the form that a Cluster has.
func (c *clocked) takeOnCluster(key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	return c.run(tokenbucket.AccountSource(), []string{tokenbucket.AccountHash(requests[0].account)}, arguments(key, account, requests)...)
}

func arguments(key, account tokenbucket.Rule, requests []request) []any {
	args := []any{key.Burst, key.Rate, key.Period.Seconds(), account.Burst, account.Rate, account.Period.Seconds()}
	last := ""
	for _, r := range requests {
		field := ""
		if account.Rate > 0 && r.account != last {
			last, field = r.account, tokenbucket.Field(r.account)
		}
		args = append(args, tokenbucket.Field(r.key), field)
	}
	return args
}

// take takes from buckets of keys in the present form.
func (c *clocked) take(rule tokenbucket.Rule, names ...string) []int64 {
	c.t.Helper()
	requests := make([]request, len(names))
	for i, name := range names {
		requests[i].key = name
	}
	var ofKeys []int64
	for i, micros := range c.takeBoth(rule, tokenbucket.Rule{}, requests...) {
		if i%2 == 0 {
			ofKeys = append(ofKeys, micros)
		}
	}
	return ofKeys
}

// takePrevious takes from buckets as the release before the hashes does.
func (c *clocked) takePrevious(rule tokenbucket.Rule, names ...string) []int64 {
	c.t.Helper()
	var keys []string
	for _, name := range names {
		keys = append(keys, tokenbucket.Prefix+name)
	}
	return c.run(previousSource, keys, rule.Burst, rule.Rate, rule.Period.Seconds())
}

// takeKeysOnly takes from buckets as the release before accounts' buckets does.
func (c *clocked) takeKeysOnly(rule tokenbucket.Rule, names ...string) []int64 {
	c.t.Helper()
	args := []any{rule.Burst, rule.Rate, rule.Period.Seconds()}
	for _, name := range names {
		args = append(args, tokenbucket.Field(name))
	}
	return c.run(keysOnlySource, []string{tokenbucket.Current, tokenbucket.Previous}, append(args, "began", "mirror_until")...)
}

// stopMirroring keeps new writes out of redis_rate's keys.
func (c *clocked) stopMirroring() {
	c.t.Helper()
	c.take(fiftyAMinute, "another bucket")
	if err := c.client.HSet(c.t.Context(), tokenbucket.Current, "mirror_until", 0).Err(); err != nil {
		c.t.Fatal(err)
	}
}
