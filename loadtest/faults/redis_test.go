package faults_test

import (
	"fmt"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/topologytest"
)

// dialsPromised is how many connections a second a gateway may ask for while Redis is away.
const dialsPromised = 10

// While Redis is down gateways limit by themselves: every request is answered in time, and Redis is not flooded with dials.
func TestRedis_Down(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	tr := newTrial(t, 1, redis.url())
	failed := tr.watch.current(t, failedCalls)
	tr.strike(func() { redis.Stop(t) })
	sleep(t, outage)
	dials := (tr.watch.current(t, failedCalls) - failed) / time.Since(tr.began).Seconds() // each failed call has dialed at most once
	tr.end(func() { redis.Start(t) })                                                     // empty
	all := tr.finish(refilled, time.Second)
	all.mustAllPass(t)
	all.mustLimit(t, len(tr.fleet), 1)
	if dials > dialsPromised {
		t.Errorf("%.1f dials a second, more than %d", dials, dialsPromised)
	}
}

// A Redis that answers late or never costs a request no more than one that is down, and requests do not pile up.
func TestRedis_Hangs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault func(*faultproxy.Proxy, *redisServer)
		lasts time.Duration
	}{
		{"200 ms slow", func(p *faultproxy.Proxy, _ *redisServer) { p.DelayResponses(within(200 * time.Millisecond)) }, outage},
		{"black hole", func(p *faultproxy.Proxy, _ *redisServer) { p.BlackHole() }, outage},
		{"SIGSTOP for 5 s", func(_ *faultproxy.Proxy, r *redisServer) { r.pause(t) }, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			redis := startRedis(t)
			proxy := faultproxy.Start(t, redis.address)
			tr := newTrial(t, 1, "redis://"+proxy.Address)
			goroutines, files := tr.watch.peaks()
			accepted := redis.accepted(t)
			tr.strike(func() { test.fault(proxy, redis) })
			sleep(t, test.lasts)
			lasted := time.Since(tr.began).Seconds()
			tr.end(func() {
				redis.resume(t)
				proxy.Heal()
			})
			all := tr.finish(aftermath, time.Second)
			all.mustAllPass(t)
			all.mustLimit(t, len(tr.fleet), 0) // Redis kept its buckets
			if dials := float64(redis.accepted(t)-accepted) / lasted; dials > dialsPromised {
				t.Errorf("%.1f dials a second, more than %d", dials, dialsPromised)
			}
			// Those of the time in which Redis may be waited for. If all waited as long as it hangs there would be those of seconds.
			most := int((honestRate + greedyRate) * within(200*time.Millisecond) / time.Second)
			nowGoroutines, nowFiles := tr.watch.peaks()
			if nowGoroutines-goroutines > most || nowFiles-files > most {
				newJudge(t, all.of(baseline)).late("%d goroutines and %d open files more: requests pile up", nowGoroutines-goroutines, nowFiles-files)
			}
		})
	}
}

// What an operator may wipe from Redis costs at most one burst a key. No request fails, nor is one decided without Redis.
func TestRedis_Flushed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command       []any
		times, bursts int
	}{
		{[]any{"FLUSHALL"}, 1, 1},
		{[]any{"SCRIPT", "FLUSH"}, 20, 0},
	} {
		t.Run(fmt.Sprint(test.command...), func(t *testing.T) {
			t.Parallel()
			redis := startRedis(t)
			tr := newTrial(t, 2, redis.url(), patient()...)
			tr.strike(func() {})
			for range test.times {
				redis.do(t, test.command...)
				sleep(t, 100*time.Millisecond)
			}
			tr.end(func() {})
			all := tr.finish(refilled, time.Second)
			all.mustAllPass(t)
			if n := tr.watch.current(t, fallbackDecisions) + tr.watch.current(t, failedCalls); n > 0 {
				t.Errorf("%.0f requests were decided without Redis", n)
			}
			over := all.overAdmission()
			if over > test.bursts*burst {
				t.Errorf("%d requests of one key beyond the limit, more than %d bursts", over, test.bursts)
			}
			if test.bursts > 0 && over < burst/2 {
				t.Errorf("only %d requests beyond the limit: the flush did nothing, and this test shows nothing", over)
			}
		})
	}
}

// Gateways follow the Sentinels to the replica of a master that died, which has all buckets but for the last moment's, and to one
// that takes over while the old master refuses writes.
func TestRedis_Failover(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault func(*testing.T, *topologytest.Sentinels)
	}{
		{"master killed", func(_ *testing.T, all *topologytest.Sentinels) { all.Master.Kill() }},
		{"master made a replica", func(t *testing.T, all *topologytest.Sentinels) {
			t.Helper()
			// It is refused until the Sentinels know a good replica.
			asynctest.Eventually(t, "the failover is accepted", func() bool {
				return all.Nodes[0].Client.Do(t.Context(), "SENTINEL", "FAILOVER", "buckets").Err() == nil
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			servers := topologytest.StartSentinels(t, 1, topologytest.Security{})
			tr := newTrial(t, 2, servers.URL, "GATEWAY_REDIS_MODE=sentinel")
			tr.strike(func() { test.fault(t, servers) })
			asynctest.Eventually(t, "the Sentinels name the replica", func() bool { return servers.Named() == servers.Replicas[0].Address })
			tr.end(func() {})
			all := tr.finish(refilled, 5*time.Second)
			all.mustAllPass(t)
			all.mustLimit(t, len(tr.fleet), 1)
			if servers.Replicas[0].Info("commandstats", "cmdstat_evalsha") == "" {
				t.Error("the new master has run no script: gateways stay with the old one")
			}
		})
	}
}

// A key's limit holds over all gateways while Redis is there, at each of them while it is not, and over all again when it is back.
func TestLimit_SeveralGateways(t *testing.T) {
	t.Parallel()
	const gateways = 3
	redis := startRedis(t)
	fleet := startGateways(t, gateways, fleetConfig{redis: redis.url(), env: patient()})
	w := startWatch(t, fleet)
	// mustAdmit checks that a new key has its limit let through this many times, to the last request, and no more.
	mustAdmit := func(when string, times int) {
		t.Helper()
		l := startLoad(t, fleet, stream{greedy, newKeys(t, 1), gateways * 40}) // more than a burst at each of them
		sleep(t, outage)
		all := l.stop()
		all.mustBeSound(t)
		all.mustAllPass(t)
		admitted, limit := len(all.admitted()), burst+all.earned()
		t.Logf("%s: %d of %d requests of a key were let through, its limit for the time is %d", when, admitted, len(all), limit)
		if admitted < times*burst || admitted > times*limit {
			t.Errorf("%s: %d requests of a key were let through, want %d to %d", when, admitted, times*burst, times*limit)
		}
	}
	mustAdmit("Redis is there", 1)
	redis.Stop(t)
	mustAdmit("Redis is down", gateways)
	redis.Start(t)
	w.heal(t)
	// Any request lets its gateway find Redis again, but for refusals that the gateway remembers.
	l := startLoad(t, fleet, stream{honest, newKeys(t, 60), honestRate}, baselineStream)
	took := w.awaitRecovery(t)
	if j := newJudge(t, l.stop().of(baseline)); took > within(time.Second) {
		j.late("Redis decided again %s after it was back", took)
	}
	mustAdmit("Redis is back", 1)
}
