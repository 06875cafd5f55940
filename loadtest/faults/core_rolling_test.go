package faults_test

import (
	"fmt"
	"testing"
	"time"
)

// All gateways and then all cores are restarted, one after the other, under load, as for a new version: no request fails,
// not even a write that must not be repeated. Clients go by the gateways' /readyz and repeat nothing.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	servers := startCores(t, 2)
	fleet := startGateways(t, 2, fleetConfig{
		redis: startRedis(t).address, core: urlsOf(servers), env: unhurried("GATEWAY_DRAIN_DELAY=1s"),
	})
	c := newCrew(t, fleet, reads, writes, keyedWrites)
	c.followReadiness()
	beside := startLoad(t, fleet, controlStream)
	c.set(2 * members)
	pass(t, time.Second)
	began := time.Now()
	inUse := func() bool { return c.ready[0].Load() && c.ready[1].Load() && coresUp(t, fleet) == 2 }
	for _, g := range fleet {
		g.stop(t)
		g.start(t)
		eventually(t, "the gateway is ready", func() bool { return g.ready(t) })
		eventually(t, "the gateway is in use again", inUse)
	}
	for _, server := range servers {
		server.stop(t)
		server.start(t)
		server.awaitReady(t)
		eventually(t, "the core is in use again", inUse)
	}
	took := time.Since(began)
	pass(t, 500*time.Millisecond)
	all := c.stop()
	busy := beside.stop().busy()
	failed := all.failed()
	untold := c.mustHaveKept(t)
	outcomes.tell(t, outcome{
		Fault: "rolling restart of 2 gateways and 2 cores", Gateways: 2, Requests: len(all), Errors: len(failed), OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("took %s; the slowest answer after %s; %d intents kept once", millis(took), millis(all.slowest()), len(c.acknowledged)),
	})
	if len(failed) > 0 || untold > 0 {
		blame(t, busy, "%d of %d requests failed, %d intents are stored that nobody was told of: %s%s", len(failed), len(all), untold, failed, failed.first(5, began))
	}
	if untold > len(failed.of(writes))+len(failed.of(keyedWrites)) {
		t.Errorf("%d intents are stored that nobody was told of", untold)
	}
	for _, a := range all.filter(func(a attempt) bool { return !a.failed() }) {
		if a.status != 200 && a.status != 201 {
			t.Errorf("answered %d %s", a.status, a.fault)
			break
		}
	}
}
