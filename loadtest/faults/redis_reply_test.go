package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/faultproxy"
)

// A request whose call reached Redis, and whose reply was lost, was charged. It is not charged again, and a reply that comes late is not
// taken for another's.
func TestRedisReply_Lost(t *testing.T) {
	t.Parallel()
	const budget = time.Second / 2 // so long that a busy machine hardly uses it up
	for _, test := range []struct {
		name  string
		fault func(*faultproxy.Proxy)
	}{
		{"dropped", (*faultproxy.Proxy).DropResponses},
		{"connection closed in its place", (*faultproxy.Proxy).ResetResponses},
		{"after the budget", func(p *faultproxy.Proxy) { p.DelayResponses(2 * budget) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := startRedis(t)
			proxy := faultproxy.Start(t, server.address)
			fleet := startGateways(t, 1, fleetConfig{redis: "redis://" + proxy.Address, env: []string{"GATEWAY_LIMIT_BUDGET=" + budget.String()}})
			keys := shared.database.newKeysLimited(t, 60, account.Limit{Requests: burst, Period: 24 * time.Hour}) // which earn no request meanwhile
			c := charging{t: t, redis: server, gateway: fleet[0]}
			others := 0
			awaitRedis := func() {
				asynctest.Eventually(t, "Redis decides again", func() bool {
					others++
					c.ask(keys[2+others%(len(keys)-2)])
					return fleet[0].Metrics(t)[degraded] == 0
				})
			}
			before := c.ask(keys[0])

			// One by one, with the breaker closed, until Redis has received some: each is charged once.
			for lost, n := 0, 0; lost < 3; n++ {
				if n == 20 {
					t.Fatalf("of %d calls whose reply was lost %d reached Redis", n, lost)
				}
				calls := c.calls()
				test.fault(proxy)
				c.ask(keys[0])
				lost += c.received(calls)
				proxy.Heal()
				awaitRedis()
				remaining := c.ask(keys[0]) // answered after all that was sent for the one before
				if charged := before - remaining; charged > 2 {
					t.Errorf("two requests, one without a reply, were charged %d times", charged)
				}
				before = remaining
			}

			// In a row, until the breaker opens: at most once.
			const row = 6
			test.fault(proxy)
			for range row {
				c.ask(keys[0])
			}
			proxy.Heal()
			awaitRedis()
			if charged := before - c.ask(keys[0]); charged > row+1 {
				t.Errorf("%d requests were charged %d times", row+1, charged)
			}
			// Another key's request gets its own reply, whatever was still in flight.
			if remaining := c.ask(keys[1]); remaining != burst-1 {
				t.Errorf("the first request of another key is told that %d are left", remaining)
			}
		})
	}
}

// charging is a gateway and its Redis.
type charging struct {
	t       *testing.T
	redis   *redisServer
	gateway *gateway
}

// ask makes one request, which must pass, and returns how many are left of the key's limit.
func (c charging) ask(key string) (remaining int) {
	c.t.Helper()
	one := sample{key: key}
	c.gateway.get(&one, direct)
	if one.status != http.StatusOK || one.fault != "" {
		c.t.Errorf("answered %d %s", one.status, one.fault)
	}
	if _, err := fmt.Sscanf(one.remaining, "r=%d", &remaining); err != nil {
		c.t.Errorf("RateLimit: %q: %v", one.remaining, err)
	}
	return remaining
}

// calls is how many calls of the script Redis has received.
func (c charging) calls() int {
	return c.redis.statistic(c.t, "commandstats", "cmdstat_evalsha:calls=")
}

// received is 1 if a call whose reply was lost has reached Redis.
func (c charging) received(before int) int {
	c.t.Helper()
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); sleep(c.t, 5*time.Millisecond) {
		if c.calls() > before {
			return 1
		}
	}
	return 0
}
