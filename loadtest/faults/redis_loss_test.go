package faults_test

import (
	"net/http"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// patient is a budget that a busy machine does not use up, for tests in which Redis must always decide.
const patient = "GATEWAY_LIMIT_BUDGET=5s"

// What an operator may wipe from Redis while it runs costs at most one burst a key, and nobody sees an error, nor is a
// single request decided without Redis.
func TestRedisFlushed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		flush  []any
		times  int
		bursts int
	}{
		{"Redis wiped by FLUSHALL", []any{"FLUSHALL"}, 1, 1},
		{"Redis's scripts wiped by SCRIPT FLUSH, 20 times", []any{"SCRIPT", "FLUSH"}, 20, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, 2, startRedis(t), patient)
			tr.strike(func() {})
			for range test.times {
				tr.redis.do(t, test.flush...)
				pass(t, 100*time.Millisecond)
			}
			tr.end(func() {})
			o, all := tr.finish(test.name, goOnAfter(test.bursts))
			outcomes.tell(t, o)
			all.mustAnswerAll(t)
			if n := tr.watch.total(fallbackDecisions) + tr.watch.total(failedCalls); n > 0 {
				t.Errorf("%.0f requests were decided without Redis", n)
			}
			if most := test.bursts * burst; o.OverAdmission > most {
				t.Errorf("%d requests of one key beyond the limit, more than %d", o.OverAdmission, most)
			}
			if test.bursts > 0 && o.OverAdmission < burst/2 {
				t.Errorf("only %d requests beyond the limit: the flush did nothing, and this test shows nothing", o.OverAdmission)
			}
		})
	}
}

// A Redis that crashes and comes back loses the buckets, or has them from its log.
func TestRedisRestarted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		args   []string
		bursts int
	}{
		{"Redis killed and started again, empty", nil, 1},
		{"Redis killed and started again, with its append-only file", []string{"--appendonly", "yes", "--appendfsync", "always"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, 2, startRedis(t, test.args...))
			tr.strike(tr.redis.kill)
			tr.end(func() { tr.redis.start(t) })
			o, all := tr.finish(test.name, goOnAfter(test.bursts))
			o.AddedP99 = -1 // there was no time to measure it in
			outcomes.tell(t, o)
			tr.mustKeep(o)
			all.mustAnswerAll(t)
			o.mustLimit(t, all, test.bursts)
			if test.bursts > 0 && o.OverAdmission < burst/2 {
				t.Errorf("only %d requests beyond the limit: Redis has kept the buckets, and this test shows nothing", o.OverAdmission)
			}
		})
	}
}

// A Redis that dies while it decides on a batch takes nobody with it: all who wait are answered at once.
func TestRedisKilled_DuringBatch(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	proxy := startProxy(t, redis.address)
	const budget = 5 * time.Second
	fleet := startGateways(t, 1, fleetConfig{redis: proxy.address, env: []string{"GATEWAY_LIMIT_BUDGET=" + budget.String()}})
	keys := newKeys(t, 64)
	warm(t, fleet, keys)

	proxy.inflict(t, blackHole)
	sent := proxy.received()
	l := startLoad(t, fleet, stream{keys: keys, rate: 1000}, controlStream)
	asynctest.Eventually(t, "requests wait for Redis", func() bool {
		return proxy.received() > sent && fleet[0].metrics(t)["intents_gateway_limit_batch_size_count"] > 0 && time.Since(l.began) > time.Second/10
	})
	struck := time.Now()
	redis.kill()
	proxy.inflict(t, refused)
	everything := l.stop()
	j := newJudge(t, everything.of(1))
	all := everything.of(0).between(l.began, struck)
	answered := time.Duration(0)
	for _, one := range all {
		answered = max(answered, one.due.Add(one.took).Sub(struck))
	}
	all.mustBeSound(t)
	outcomes.tell(t, outcome{
		Fault: "Redis killed during a batch", Gateways: 1, Requests: len(all), Errors: len(all.errors()),
		OverAdmission: all.overAdmission(), AddedP99: -1, Recovery: answered, Note: "recovery: until the last of them was answered",
	})
	if statuses := all.statuses(); statuses[http.StatusOK] != len(all) || len(all) < 50 {
		t.Errorf("those who waited were answered %v", statuses)
	}
	if answered > budget/2 {
		j.late("the last was answered %s after Redis died: it waited for the budget of %s", answered, budget)
	}
}

// goOnAfter is how long a trial goes on where so many bursts may have been lost.
func goOnAfter(bursts int) time.Duration {
	if bursts > 0 {
		return refilled
	}
	return aftermath
}
