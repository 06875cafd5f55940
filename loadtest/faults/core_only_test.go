package faults_test

import (
	"fmt"
	"testing"
	"time"
)

// The only core gone: everybody is told so at once, and all is well as soon as it is back.
func TestOnlyCoreDown(t *testing.T) {
	t.Parallel()
	only := startCores(t, 1)[0]
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).address, core: only.url, env: unhurried()})
	c := newWorkload(t, fleet, reads, writes, keyedWrites)
	c.retries = true
	beside := startBeside(t, fleet)
	c.set(members)
	pass(t, 1500*time.Millisecond)
	struck := time.Now()
	only.kill()
	pass(t, 2*time.Second)
	only.start(t)
	only.awaitReady(t)
	healed := time.Now()
	recovered := c.untilAllSucceed(t, healed)
	all := c.stop()
	over, j := endBeside(t, beside)

	hit := all.hitBy(struck)
	untold := c.mustHaveKept(t)
	o := outcome{
		Fault: "the only core killed", Gateways: 1, Requests: len(hit), Errors: len(all.failed()),
		OverAdmission: over, AddedP99: -1, Recovery: recovered,
		Note: fmt.Sprintf("99 in 100 told within %s; %d intents kept once, %d made that nobody was told of", millis(hit.failed().p99()), len(c.acknowledged), untold),
	}
	outcomes.tell(t, o)
	all.failed().mustBeUnavailable(t, struck)
	if slow := hit.failed().p99(); slow > within(100*time.Millisecond) {
		j.late("99 in 100 were told only after %s", slow)
	}
	if recovered > within(2*time.Second) {
		j.late("all went well again only after %s", recovered)
	}
	all.mustBeSound(t)
}

// A core that has become slow gets no more requests at once than it may have connections; those too many are told so soon.
func TestOnlyCoreSlow(t *testing.T) {
	t.Parallel()
	const (
		connections = 4
		latency     = 300 * time.Millisecond
		crowd       = 60
	)
	proxy := startProxy(t, shared.stack.Env().CoreURL[len("http://"):])
	fleet := startGateways(t, 1, fleetConfig{
		redis: startRedis(t).address, core: proxy.url(), env: unhurried(fmt.Sprintf("GATEWAY_CORE_MAX_CONNS=%d", connections)),
	})
	c := newWorkload(t, fleet, keyedWrites)
	c.pause = 100 * time.Millisecond
	beside := startBeside(t, fleet)
	c.set(crowd)
	pass(t, time.Second)
	struck := time.Now()
	proxy.slowBy(t, latency)
	most := 0
	for time.Since(struck) < 2500*time.Millisecond {
		most = max(most, proxy.connections())
		pass(t, watchEvery)
	}
	healed := time.Now()
	proxy.heal(t)
	recovered := c.untilAllSucceed(t, healed)
	all := c.stop()
	over, j := endBeside(t, beside)

	hit := all.hitBy(struck)
	during := hit.filter(func(a attempt) bool { return a.began.Before(healed) })
	refusals := during.failed()
	o := outcome{
		Fault: fmt.Sprintf("core slower by %s", latency), Gateways: 1, Requests: len(hit), Errors: len(hit.failed()),
		OverAdmission: over, AddedP99: -1, Recovery: recovered,
		Note: fmt.Sprintf("%d connections at most, 99 in 100 refusals within %s, %d answered meanwhile",
			most, millis(refusals.p99()), len(during)-len(refusals)),
	}
	outcomes.tell(t, o)
	// Of each kind: writes, lists and verdicts; and one for probes. As many may still be about to close.
	if bound := 2 * (3*connections + 1); most > bound {
		t.Errorf("%d connections to core, more than %d", most, bound)
	}
	if len(refusals) == 0 || len(refusals) == len(during) {
		t.Errorf("of %d requests %d were refused: some should be, and some answered", len(during), len(refusals))
	}
	refusals.mustBeUnavailable(t, struck)
	// Verdicts count on, since the feed of changed keys keeps pace with the slow link: nobody waits for core to be refused.
	if slow := refusals.p99(); slow > within(latency) {
		j.late("99 in 100 were refused only after %s", slow)
	}
	if recovered > within(time.Second) {
		j.late("all went well again only after %s", recovered)
	}
	c.mustHaveKept(t)
	all.mustBeSound(t)
}
