package limit_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/topology"
)

// onCluster makes limiters that share a Cluster.
func onCluster(tb testing.TB, c *topologytest.Cluster, count int, budget time.Duration, fallback limit.Fallback) []limiter {
	tb.Helper()
	replicas := make([]limiter, count)
	for i := range replicas {
		replicas[i] = newLimiterOn(tb, topology.Cluster, c.URL, budget, fallback)
	}
	return replicas
}

// Slots that move to another node while requests are in flight, and nodes that forget the scripts, cost no request an error,
// and none is charged twice.
func TestCluster_SlotsMigrateUnderLoad(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	replicas := onCluster(t, c, 3, generous, limit.Closed)
	const slots, rounds = 5, 12
	var names [slots]string
	var passed [slots]atomic.Int64
	for i := range names {
		names[i] = uuid.NewString()
	}
	done := make(chan struct{})
	var load sync.WaitGroup
	end := sync.OnceFunc(func() { close(done); load.Wait() })
	t.Cleanup(end)
	for client := range 12 {
		load.Go(func() {
			for n := client; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if d, err := replicas[client%3].Take(names[n%slots], plenty, time.Now()); err != nil {
					t.Error(err)
					return
				} else if d.Allowed {
					passed[n%slots].Add(1)
				}
			}
		})
	}
	at := map[string]int{} // which master has a name's slot
	for _, name := range names {
		at[name] = slices.Index(c.Masters, c.Owner(c.Slot(hashOf(name))))
	}
	for range rounds {
		for _, name := range names {
			slot, from := c.Slot(hashOf(name)), c.Masters[at[name]]
			at[name] = (at[name] + 1) % len(c.Masters)
			to := c.Masters[at[name]]
			c.Begin(slot, from, to)
			c.Carry(slot, from, to)
			to.Do("SCRIPT", "FLUSH")
			c.Finish(slot, from, to)
		}
	}
	end()
	asked := 0.0
	for _, r := range replicas {
		asked += r.metric(t, "intents_gateway_limit_decisions_total", "allowed") + r.metric(t, "intents_gateway_limit_decisions_total", "refused")
		if failures := r.metric(t, "intents_gateway_limit_redis_failures_total"); failures != 0 {
			t.Errorf("%g calls failed", failures)
		}
	}
	t.Logf("%g decisions through %d moves", asked, rounds*slots)
	for i, name := range names {
		if got, want := replicas[0].charged(t, name, plenty), int(passed[i].Load()); got < want-1 || got > want+1 || want == 0 {
			t.Errorf("%d requests passed, %d were charged", want, got)
		}
	}
}

// plenty outlasts the test, and gives back one request in 84 s.
var plenty = tokenbucket.Rule{Rate: 1 << 10, Burst: 1 << 16, Period: 24 * time.Hour}

// A connection that is lost after Redis has charged a request costs that request its answer, and no second charge.
func TestCluster_ChargesOnce(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 1, 0, topologytest.Security{})
	proxy := faultproxy.Start(t, c.Masters[0].Address)
	c.Masters[0].Do("CONFIG", "SET", "cluster-announce-port", proxy.Port)
	l, name := onCluster(t, c, 1, generous, limit.Closed)[0], uuid.NewString()
	l.take(t, name, fiftyADay)
	const cut = 15
	for range cut {
		proxy.LoseReply(topologytest.IsScript)
		if d, err := l.Take(name, fiftyADay, time.Now()); err == nil {
			t.Errorf("decided without an answer: %+v", d)
		}
		l.take(t, name, fiftyADay) // a connection for the next one
	}
	if charged := l.charged(t, name, fiftyADay); charged != 1+2*cut || proxy.Lost() != cut {
		t.Errorf("%d were charged after %d calls; %d were cut off", charged, 1+2*cut, proxy.Lost())
	}
}

// Keys are put apart by the slot that Redis counts.
func TestSlot_AsRedis(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 1, 0, topologytest.Security{})
	keys := []string{"", "{", "{}", "{}a", "{a}b", "a{b}c}", "{{a}}", "}{", "a{", "123456789", "rate:ünïcode"}
	for range 200 {
		keys = append(keys, "rate:key:"+uuid.NewString(), "{"+uuid.NewString()+"}"+uuid.NewString())
	}
	for _, key := range keys {
		if got, want := limit.Slot(key), c.Slot(key); int(got) != want {
			t.Errorf("%q: slot %d, Redis says %d", key, got, want)
		}
	}
}
