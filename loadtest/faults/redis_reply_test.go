package faults_test

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/asynctest"
)

// A request whose call reached Redis, and whose reply was lost, was charged. It is not charged again, and a reply that comes late is not
// taken for another's.
func TestRedisReply_Lost(t *testing.T) {
	t.Parallel()
	const budget = time.Second / 2 // so long that a busy machine hardly uses it up
	for _, test := range []struct {
		name  string
		fault func(*proxy)
	}{
		{"dropped", (*proxy).dropResponses},
		{"connection closed in its place", (*proxy).cutResponses},
		{"after the budget", func(p *proxy) { p.delayResponses(2 * budget.Milliseconds()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := startRedis(t)
			proxy := startProxy(t, server.address)
			fleet := startGateways(t, 1, fleetConfig{redis: proxy.url("redis"), env: []string{"GATEWAY_LIMIT_BUDGET=" + budget.String()}})
			keys := newKeys(t, 60)
			c := charging{t: t, redis: server, gateway: fleet[0], key: keys[0]}
			c.ask()
			c.begin()
			others := 0
			awaitRedis := func() {
				asynctest.Eventually(t, "Redis decides again", func() bool {
					others++
					(&charging{t: t, gateway: fleet[0], key: keys[2+others%(len(keys)-2)]}).ask()
					return fleet[0].metrics(t)[degraded] == 0
				})
			}

			// One by one, with the breaker closed, until Redis has received some: each is charged once.
			lost := 0
			for n := 0; lost < 3; n++ {
				if n == 20 {
					t.Fatalf("of %d calls whose reply was lost %d reached Redis", n, lost)
				}
				test.fault(proxy)
				before := c.charged()
				c.ask()
				lost += c.received(before)
				proxy.heal()
				awaitRedis()
				c.ask() // answered after all that was sent for the one before
				if charged := c.charged() - before; charged > 2 {
					t.Errorf("two requests, one without a reply, were charged %d times", charged)
				}
			}

			// In a row, until the breaker opens: at most once.
			before, row := c.charged(), 6
			test.fault(proxy)
			for range row {
				c.ask()
			}
			proxy.heal()
			awaitRedis()
			c.ask()
			if charged := c.charged() - before; charged > row+1 {
				t.Errorf("%d requests were charged %d times", row+1, charged)
			}
			// Another key's request gets its own reply, whatever was still in flight.
			if remaining := (&charging{t: t, gateway: fleet[0], key: keys[1]}).ask(); remaining != "r=49" {
				t.Errorf("the first request of another key is told %q", remaining)
			}
			t.Logf("%d requests, %d charged", c.asked, c.charged())
		})
	}
}

// charging is one key, its requests and its bucket in Redis.
type charging struct {
	t       *testing.T
	redis   *redisServer
	gateway *gateway
	key     string
	asked   int
	bucket  string
	first   float64 // when the bucket is full without the requests since begin, in seconds
}

// ask makes one request, which must pass, and returns what is left of the limit.
func (c *charging) ask() (remaining string) {
	c.t.Helper()
	one := sample{key: c.key}
	c.gateway.get(&one, direct)
	c.asked++
	if one.status != http.StatusOK || one.fault != "" {
		c.t.Errorf("request %d was answered %d %s", c.asked, one.status, one.fault)
	}
	return one.remaining
}

// full is when the bucket is full again, in seconds.
func (c *charging) full() float64 {
	c.t.Helper()
	at, err := c.redis.client.Get(c.t.Context(), c.bucket).Float64()
	if err != nil && !errors.Is(err, redis.Nil) {
		c.t.Fatal(err)
	}
	return at
}

// begin counts requests from now on, and takes many tokens from the bucket: a charge delays the time at which it is full by that of one
// token as long as it is not full meanwhile.
func (c *charging) begin() {
	c.t.Helper()
	names, err := c.redis.client.Keys(c.t.Context(), "rate:key:*").Result()
	if err != nil || len(names) != 1 {
		c.t.Fatalf("the buckets of one key: %v %v", names, err)
	}
	c.bucket, c.asked = names[0], 0
	const taken = 25
	if err := c.redis.client.IncrByFloat(c.t.Context(), c.bucket, taken*token.Seconds()).Err(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.redis.client.Expire(c.t.Context(), c.bucket, time.Minute).Err(); err != nil {
		c.t.Fatal(err)
	}
	c.first = c.full()
}

// charged is how many requests the bucket was charged for.
func (c *charging) charged() int {
	c.t.Helper()
	return int(math.Round((c.full() - c.first) / token.Seconds()))
}

// received is 1 if a call whose reply was lost has reached Redis.
func (c *charging) received(before int) int {
	c.t.Helper()
	deadline := time.Now().Add(time.Second)
	for c.charged() == before && time.Now().Before(deadline) {
		sleep(c.t, 5*time.Millisecond)
	}
	return min(1, c.charged()-before)
}
