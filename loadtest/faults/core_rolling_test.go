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
	r := startRelease(t)
	c := newCrew(t, r.fleet, reads, writes, keyedWrites)
	c.followReadiness()
	r.inUse = func() bool { return c.ready[0].Load() && c.ready[1].Load() }
	r.roll(t, c, "rolling restart of 2 gateways and 2 cores", 0)
}

// The same behind HAProxy as it is shipped, again and again until many requests have been made. Clients know only HAProxy.
func TestRollingRestartBehindHAProxy(t *testing.T) {
	t.Parallel()
	r := startRelease(t)
	balancer := startHAProxy(t, r.fleet)
	c := newCrew(t, []*gateway{{url: balancer.url}}, reads, writes, keyedWrites)
	r.inUse = func() bool { return balancer.inUse(t) == len(r.fleet) }
	least := 2000
	if *strict {
		least = 10_000
	}
	r.roll(t, c, "rolling restarts of 2 gateways and 2 cores behind HAProxy", least)
}

// release is what a new version is rolled out to.
type release struct {
	fleet   []*gateway
	servers []*coreServer
	// inUse reports whether all gateways are sent requests.
	inUse func() bool
}

func startRelease(t *testing.T) *release {
	t.Helper()
	servers := startCores(t, 2)
	return &release{servers: servers, fleet: startGateways(t, 2, fleetConfig{
		// Longer than HAProxy takes to notice.
		redis: startRedis(t).address, core: urlsOf(servers), env: unhurried("GATEWAY_DRAIN_DELAY=1500ms"),
	})}
}

// roll restarts all of it, and again until the crew has made so many requests, of which none may fail.
func (r *release) roll(t *testing.T, c *crew, name string, least int) {
	t.Helper()
	beside := startLoad(t, r.fleet, controlStream)
	c.set(2 * members)
	pass(t, time.Second)
	began := time.Now()
	rounds := 0
	for ; rounds == 0 || len(c.soFar()) < least; rounds++ {
		r.restart(t)
	}
	took := time.Since(began)
	pass(t, 500*time.Millisecond)
	all := c.stop()
	busy := beside.stop().busy()
	failed := all.failed()
	untold := c.mustHaveKept(t)
	outcomes.tell(t, outcome{
		Fault: name, Gateways: len(r.fleet), Requests: len(all), Errors: len(failed), OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("%d times, in %s; the slowest answer after %s; %d intents kept once", rounds, millis(took), millis(all.slowest()), len(c.acknowledged)),
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

// restart ends and starts one after the other, each when the one before is in use again.
func (r *release) restart(t *testing.T) {
	t.Helper()
	inUse := func() bool { return r.inUse() && coresUp(t, r.fleet) == len(r.servers) }
	for _, g := range r.fleet {
		g.stop(t)
		g.start(t)
		eventually(t, "the gateway is ready", func() bool { return g.ready(t) })
		eventually(t, "the gateway is in use again", inUse)
	}
	for _, server := range r.servers {
		server.stop(t)
		server.start(t)
		server.awaitReady(t)
		eventually(t, "the core is in use again", inUse)
	}
}
