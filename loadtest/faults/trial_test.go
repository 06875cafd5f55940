package faults_test

import (
	"slices"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

const (
	// honestKeys share honestRate requests a second, so that each stays far below its limit. greedyRate is that of one key, over it.
	honestKeys, honestRate, greedyRate = 60, 40, 40

	// healthy is how long a trial runs before its fault: the greedy key's burst is used up by then.
	healthy = 1500 * time.Millisecond
	// settling is how long connections take to be made, and requests to be answered, which is not compared.
	settling = 300 * time.Millisecond
	// outage is how long a fault lasts, and aftermath how long a trial goes on after it, longer than the breaker takes to probe.
	outage, aftermath = 2500 * time.Millisecond, time.Second
	// refilled is how long a trial goes on where buckets were lost: the greedy key then needs more than a second to use up another burst.
	refilled = 3 * time.Second
)

// trial is gateways under load while a fault of their Redis lasts.
type trial struct {
	t     *testing.T
	fleet []*gateway
	load  *load
	watch *watch

	// began is when the fault was about to begin, ended when it was about to end, healed when it had.
	began, ended, healed time.Time
}

// newTrial starts gateways and load, and returns when the greedy key is refused at every gateway.
func newTrial(t *testing.T, gateways int, redis string, env ...string) *trial {
	t.Helper()
	budget := "GATEWAY_LIMIT_BUDGET=" + within(50*time.Millisecond).String()
	tr := &trial{t: t, fleet: startGateways(t, gateways, fleetConfig{redis: redis, env: append([]string{budget}, env...)})}
	keys := newKeys(t, honestKeys)
	warm(t, tr.fleet, keys)
	tr.watch = startWatch(t, tr.fleet)
	asynctest.Eventually(t, "Redis makes all decisions before the fault", func() bool { return tr.startLoad(keys) })
	return tr
}

// startLoad starts load with a new greedy key and returns once that is refused at every gateway. It reports whether Redis made all
// decisions until then: a gateway that Redis has told nothing about the key adds a burst of its own, which would count as the fault's.
func (tr *trial) startLoad(keys []string) (byRedis bool) {
	tr.t.Helper()
	before := tr.watch.current(tr.t, fallbackDecisions)
	tr.load = startLoad(tr.t, tr.fleet, stream{honest, keys, honestRate}, stream{greedy, newKeys(tr.t, 1), greedyRate}, baselineStream)
	sleep(tr.t, healthy)
	asynctest.Eventually(tr.t, "the greedy key is refused at every gateway", func() bool {
		refused := make([]bool, len(tr.fleet))
		for _, one := range tr.load.soFar() {
			refused[one.gateway] = refused[one.gateway] || one.status == 429
		}
		return !slices.Contains(refused, false)
	})
	if tr.watch.current(tr.t, fallbackDecisions) == before {
		return true
	}
	tr.t.Log("this machine was too busy for Redis to decide before the fault: begun again")
	tr.load.stop()
	return false
}

// strike begins the fault.
func (tr *trial) strike(fault func()) {
	tr.began = time.Now()
	fault()
}

// end ends the fault.
func (tr *trial) end(remedy func()) {
	tr.ended = time.Now()
	remedy()
	tr.healed = tr.watch.heal(tr.t)
}

// finish waits until Redis decides again, goes on for a while, and ends the load. It holds the fault to the times that are promised of
// every fault of Redis: recovery within a time from its end, and hardly longer response times meanwhile, unless it was over at once.
func (tr *trial) finish(goOn, recovery time.Duration) samples {
	tr.t.Helper()
	took := tr.watch.awaitRecovery(tr.t)
	sleep(tr.t, goOn)
	all := tr.load.stop()
	tr.watch.end()
	j := newJudge(tr.t, all.of(baseline))
	all = all.filter(func(one sample) bool { return one.kind != baseline })
	all.mustBeSound(tr.t)
	before, during := all.between(tr.load.began.Add(settling), tr.began.Add(-settling)), all.between(tr.began, tr.ended)
	tr.t.Logf("99 in 100 requests within %s before, %s during the fault; Redis decided again after %s", before.quantile(0.99), during.quantile(0.99), took)
	share := 0.99
	if !*strict {
		share = 0.9 // a busy moment of the machine delays one in a hundred
	}
	if added, promise := during.quantile(share)-before.quantile(share), within(60*time.Millisecond); added > promise && len(during) > 50 {
		j.late("the fault added %s to the time of requests, more than %s", added, promise)
	}
	if promise := within(recovery); took > promise {
		j.late("Redis decided again %s after the fault, later than %s", took, promise)
	}
	return all
}
