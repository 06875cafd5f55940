package faults_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

const (
	// crowdKeys share crowdRate requests a second: each stays far below its limit, so that whatever is refused to one of
	// them is a fault's doing.
	crowdKeys = 60
	crowdRate = 40
	// greedyRate is what the one key gets that asks for more than its limit.
	greedyRate = 40

	// healthy is how long a trial runs before its fault: the greedy key's burst is used up by then, and there is something
	// to compare with.
	healthy = 1500 * time.Millisecond
	// settling is how long connections take to be there, and requests to be answered, which is no part of what is compared.
	settling = 300 * time.Millisecond
	// outage is how long a fault lasts where nothing else is said.
	outage = 2500 * time.Millisecond
	// aftermath is how long a trial goes on once all is well, and longer than a probe of the breaker takes.
	aftermath = time.Second
	// refilled is how long it goes on where buckets were lost: the greedy key hears of it after the time of a token, and then
	// needs more than a second to use another burst up.
	refilled = 3 * time.Second
)

// The streams of a trial.
const (
	crowd = iota
	greedy
	control
)

// trial is gateways on a Redis of their own, behind a proxy, under load, while a fault strikes.
type trial struct {
	t     *testing.T
	redis *redisServer
	proxy *proxy
	fleet []*gateway
	keys  []string // the crowd's, then the greedy one
	load  *load
	watch *watch

	// struck is when the fault was about to begin, broken when it had; ended when it was about to end, healed when it had.
	struck, broken, ended, healed time.Time

	// slower is what the fault added to the time of nine in ten requests.
	slower time.Duration
	judge  judge

	dialsBefore  int
	failedBefore float64
	peakBefore   [2]int
}

// newTrial starts everything and lets load run for a while, until the greedy key is refused at every gateway. The load is
// stopped by finish.
func newTrial(t *testing.T, gateways int, redis *redisServer, env ...string) *trial {
	t.Helper()
	tr := &trial{t: t, redis: redis, proxy: startProxy(t, redis.address)}
	budget := "GATEWAY_LIMIT_BUDGET=" + within(50*time.Millisecond).String()
	tr.fleet = startGateways(t, gateways, fleetConfig{redis: tr.proxy.address, env: append([]string{budget}, env...)})
	tr.keys = newKeys(t, crowdKeys)
	warm(t, tr.fleet, tr.keys)
	tr.watch = startWatch(t, tr.fleet)
	for range 10 {
		if tr.startLoad() {
			return tr
		}
		t.Log("this machine was too busy for Redis to decide before the fault: begun again")
	}
	t.Fatal("this machine is too busy for Redis to decide even without a fault")
	return nil
}

// startLoad starts load on a new greedy key and returns once that is refused at every gateway. It reports whether Redis made
// all decisions until then: a gateway that it has told nothing about the key has a burst of its own to give, which would count
// as the fault's.
func (tr *trial) startLoad() (byRedis bool) {
	tr.t.Helper()
	decided := tr.withoutRedis()
	tr.keys = slices.Concat(tr.keys[:crowdKeys], newKeys(tr.t, 1))
	tr.load = startLoad(tr.t, tr.fleet,
		stream{keys: tr.keys[:crowdKeys], rate: crowdRate}, stream{keys: tr.keys[crowdKeys:], rate: greedyRate}, controlStream)
	pass(tr.t, healthy)
	asynctest.Eventually(tr.t, "the greedy key is refused", func() bool {
		refused := map[int]bool{}
		for _, one := range tr.load.soFar() {
			refused[one.gateway] = refused[one.gateway] || one.status == http.StatusTooManyRequests
		}
		return !slices.Contains(slices.Collect(maps.Values(refused)), false)
	})
	if tr.withoutRedis() == decided {
		return true
	}
	tr.load.stop()
	return false
}

// withoutRedis is how many requests were decided without Redis by now.
func (tr *trial) withoutRedis() (total float64) {
	tr.t.Helper()
	for _, g := range tr.fleet {
		total += g.metrics(tr.t).sum(fallbackDecisions)
	}
	return total
}

// strike begins the fault.
func (tr *trial) strike(fault func()) {
	tr.dialsBefore, tr.failedBefore = tr.proxy.dials(), tr.watch.total(failedCalls)
	tr.peakBefore[0], tr.peakBefore[1] = tr.watch.peaks()
	tr.struck = time.Now()
	fault()
	tr.broken = time.Now()
}

// end ends the fault.
func (tr *trial) end(remedy func()) {
	tr.ended = time.Now()
	remedy()
	tr.healed = tr.watch.heal(tr.t)
}

// dialsASecond is how many connections a gateway asked for while the fault lasted.
func (tr *trial) dialsASecond() float64 {
	// The first of each gateway begins the time in which the others are counted.
	again := tr.proxy.dials() - tr.dialsBefore - len(tr.fleet)
	return float64(max(0, again)) / time.Since(tr.struck).Seconds() / float64(len(tr.fleet))
}

// finish waits until Redis decides again, and goes on for a while, ends the load and tells what it came to.
func (tr *trial) finish(fault string, goOn time.Duration) (outcome, samples) {
	tr.t.Helper()
	recovery := tr.watch.recovery(tr.t)
	pass(tr.t, goOn)
	all := tr.load.stop()
	tr.watch.end()
	tr.judge = newJudge(tr.t, all.of(control))
	all = all.filter(func(one sample) bool { return one.stream != control })
	all.mustBeSound(tr.t)
	hit, during, after := all.between(tr.struck, time.Now()), all.between(tr.struck, tr.ended), all.between(tr.healed, time.Now())
	before := all.between(tr.load.began.Add(settling), tr.struck.Add(-settling)) // and none that met the fault
	tr.slower = during.quantile(0.9) - before.quantile(0.9)
	tr.t.Logf("99 in 100 requests within %s before, %s during, %s after the fault", before.p99(), during.p99(), after.p99())
	return outcome{
		Fault: fault, Gateways: len(tr.fleet), Requests: len(hit), Errors: len(hit.errors()),
		OverAdmission: all.of(greedy).overAdmission(), AddedP99: max(0, during.p99()-before.p99()), Recovery: recovery,
	}, all
}

// mustKeep holds an outcome to the times that are promised of every fault of Redis.
func (tr *trial) mustKeep(o outcome) {
	tr.t.Helper()
	added := o.AddedP99
	if !*strict {
		added = tr.slower // it takes the machine to be busy for a moment to make one in a hundred wait
	}
	if promise := within(60*time.Millisecond) + stall(); added > promise {
		tr.judge.late("%s added %s to the time of almost all requests, more than %s", o.Fault, added, promise)
	}
	if promise := within(time.Second); o.Recovery > promise {
		tr.judge.late("%s: Redis was asked again %s after it was over, later than %s", o.Fault, o.Recovery, promise)
	}
}
