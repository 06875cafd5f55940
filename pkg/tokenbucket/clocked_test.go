package tokenbucket_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/tokenbucket"
)

// clocked is a Redis whose scripts read the clock of the test, in a single call; those in a pipeline read Redis's.
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
		c.client.AddHook(c)
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

// DialHook implements redis.Hook.
func (c *clocked) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (c *clocked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook sets the clock in a script's text. Redis does not know the SHA-1 of the script without it, so each call sends the text.
// redis_rate's keys must not end by Redis's own clock; a TAT that is past is none.
func (c *clocked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "eval" {
			source, _ := args[1].(string)
			source = strings.Replace(source, `redis.call("TIME")`, fmt.Sprintf("{%d, %d}", c.now.Unix(), c.now.Nanosecond()/1000), 1)
			args[1] = strings.ReplaceAll(source, `"EX", math.ceil(reset_after)`, `"EX", 1e6`)
		}
		return next(ctx, cmd)
	}
}

// pass moves the clock.
func (c *clocked) pass(d time.Duration) {
	c.t.Helper()
	c.now = c.now.Add(d)
	c.fastForward(max(0, d))
}

// request is a request with a key of an account, by the names of their buckets.
type request struct{ key, account string }

// newCall is a call for requests that take so many tokens of their account, which is empty for none.
func newCall(cost int, key, account tokenbucket.Rule, requests ...request) *tokenbucket.Call {
	call := &tokenbucket.Call{}
	call.Begin(key, account, cost)
	for _, r := range requests {
		var field any
		if r.account != "" {
			field = tokenbucket.Field(r.account)
		}
		call.Add(tokenbucket.Field(r.key), field)
	}
	return call
}

// takeBoth takes a token from the buckets of keys and of accounts: two numbers for each request.
func (c *clocked) takeBoth(key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	return c.takeMany(1, key, account, requests...)
}

// takeMany is takeBoth with so many tokens from the buckets of accounts.
func (c *clocked) takeMany(cost int, key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	reply, err := newCall(cost, key, account, requests...).Do(c.t.Context(), c.client)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply
}

// takeOnCluster is takeBoth for requests of one account, in the form that a Cluster has.
func (c *clocked) takeOnCluster(key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	return c.takeManyOnCluster(1, key, account, requests...)
}

// takeManyOnCluster is takeMany in that form.
func (c *clocked) takeManyOnCluster(cost int, key, account tokenbucket.Rule, requests ...request) []int64 {
	c.t.Helper()
	script := newCall(cost, key, account, requests...).OnCluster(c.t.Context(), requests[0].account, true)
	_ = c.client.Process(c.t.Context(), script) // the error is the script's
	reply, err := script.Int64Slice()
	if err != nil {
		c.t.Fatal(err)
	}
	return reply
}

// take takes from the buckets of keys alone.
func (c *clocked) take(rule tokenbucket.Rule, names ...string) (ofKeys []int64) {
	c.t.Helper()
	requests := make([]request, len(names))
	for i, name := range names {
		requests[i].key = name
	}
	reply := c.takeBoth(rule, tokenbucket.Rule{}, requests...)
	for i := 0; i < len(reply); i += 2 {
		ofKeys = append(ofKeys, reply[i])
	}
	return ofKeys
}
