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

// A request whose call reached Redis, and whose answer did not come back, was charged; it must not be charged again, nor
// may an answer that comes late be taken for another's.
func TestRedisReply_Lost(t *testing.T) {
	t.Parallel()
	const budget = time.Second / 2 // so long that a busy machine hardly uses it up
	for _, test := range []struct {
		name  string
		fault fault
	}{
		{"Redis's replies lost", repliesDropped},
		{"Redis's connection cut in place of the reply", cutAtReply},
		{"Redis's replies after the budget", slow},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := startRedis(t)
			proxy := startProxy(t, server.address)
			proxy.losesRepliesTo("eval")
			proxy.replyAfter(2 * budget)
			fleet := startGateways(t, 1, fleetConfig{redis: proxy.address, env: []string{"GATEWAY_LIMIT_BUDGET=" + budget.String()}})
			keys := newKeys(t, 60)
			c := charging{t: t, redis: server, gateway: fleet[0], key: keys[0]}
			c.ask()
			c.begin()

			// One by one, with the breaker closed, until Redis has heard of some: each is charged once.
			lost := 0
			for n := 0; lost < 3; n++ {
				if n == 8 {
					t.Fatalf("of %d calls that should have lost their reply %d reached Redis", n, lost)
				}
				proxy.inflict(t, test.fault)
				before := c.charged()
				c.ask()
				lost += c.heard(before)
				proxy.heal(t)
				c.ask() // answered after all that was sent for the one before
				if charged := c.charged() - before; charged > 2 {
					t.Errorf("two requests, one without a reply, were charged %d times", charged)
				}
			}

			// In a row, until the breaker opens: at most once.
			before, row := c.charged(), 6
			proxy.inflict(t, test.fault)
			for range row {
				c.ask()
			}
			proxy.heal(t)
			others := 0
			asynctest.Eventually(t, "Redis decides again", func() bool {
				others++
				(&charging{t: t, gateway: fleet[0], key: keys[2+others%(len(keys)-2)]}).ask()
				return fleet[0].metrics(t)[degraded] == 0
			})
			c.ask()
			charged := c.charged()
			if charged-before > row+1 {
				t.Errorf("%d requests were charged %d times", row+1, charged-before)
			}
			// Another key's request is answered for itself, whatever was still under way.
			fresh := charging{t: t, gateway: fleet[0], key: keys[1]}
			if left := fresh.ask(); left != "r=49" {
				t.Errorf("the first request of another key is told %q", left)
			}
			outcomes.tell(t, outcome{
				Fault: test.name, Gateways: 1, Requests: c.asked, Errors: c.failed, OverAdmission: max(0, charged-c.asked),
				AddedP99: -1, Recovery: -1, Note: count(c.asked) + " asked, " + count(charged) + " charged, none twice",
			})
		})
	}
}

// charging is one key, what was asked with it, and its bucket in Redis.
type charging struct {
	t       *testing.T
	redis   *redisServer
	gateway *gateway
	key     string
	asked   int
	failed  int
	bucket  string
	first   float64 // when the bucket was full before anything else was asked, in seconds
}

// ask makes one request, which must pass, and returns what it is told is left.
func (c *charging) ask() (left string) {
	c.t.Helper()
	l := &load{streams: []stream{{}}, fleet: []*gateway{c.gateway}, client: direct}
	one := sample{key: c.key}
	l.ask(&one)
	c.asked++
	if one.status != http.StatusOK || one.fault != "" {
		c.failed++
		c.t.Errorf("request %d was answered %d %s", c.asked, one.status, one.fault)
	}
	return one.left
}

// theBucket is the name of the only bucket of a key.
func (c *charging) theBucket() string {
	c.t.Helper()
	names, err := c.redis.client.Keys(c.t.Context(), "rate:key:*").Result()
	if err != nil || len(names) != 1 {
		c.t.Fatalf("the buckets of one key: %v %v", names, err)
	}
	return names[0]
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

// begin forgets what was asked, and takes much from the bucket: a charge moves the time at which it is full by that of one
// token as long as it does not get full meanwhile.
func (c *charging) begin() {
	c.t.Helper()
	c.bucket = c.theBucket()
	c.asked = 0
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

// heard is 1 if a call of which the reply was lost has reached Redis.
func (c *charging) heard(before int) int {
	c.t.Helper()
	deadline := time.Now().Add(time.Second)
	for c.charged() == before && time.Now().Before(deadline) {
		pass(c.t, 5*time.Millisecond)
	}
	return min(1, c.charged()-before)
}
