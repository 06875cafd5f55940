package faults_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// All gateways and then all cores are restarted, one after the other, under load, as for a new version: no request fails,
// not even a write that must not be repeated. Clients go by the gateways' /readyz and repeat nothing.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	r := startRelease(t)
	c := newWorkload(t, r.fleet, reads, writes, keyedWrites)
	c.followReadiness()
	r.inUse = func() bool { return c.ready[0].Load() && c.ready[1].Load() }
	r.roll(t, c, "rolling restart of 2 gateways and 2 cores", 0)
}

// The same behind HAProxy as it is shipped, again and again until many requests have been made. Clients know only HAProxy.
func TestRollingRestart_HAProxy(t *testing.T) {
	t.Parallel()
	r := startRelease(t)
	balancer := startHAProxy(t, r.fleet)
	c := newWorkload(t, []*gateway{{url: balancer.url}}, reads, writes, keyedWrites)
	r.inUse = func() bool { return balancer.inUse(t) == len(r.fleet) }
	least := 2000
	if full() {
		least = 10_000
	}
	r.roll(t, c, "rolling restarts of 2 gateways and 2 cores behind HAProxy", least)
}

// Another version is upgraded to this one as deploy/README.md says, cores and then gateways, and goes back in reverse: the two
// work together in between, and no request fails.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	old := previousBinaries(t)
	r := startReleaseOf(t, old)
	c := newWorkload(t, r.fleet, reads, writes, keyedWrites)
	c.followReadiness()
	r.inUse = func() bool { return c.ready[0].Load() && c.ready[1].Load() }
	r.steps = []func(*testing.T){
		r.become(shared.binaries), r.restartCores, r.restartGateways,
		r.become(old), r.restartGateways, r.restartCores,
	}
	r.roll(t, c, "upgrade of 2 gateways and 2 cores, and back", 0)
}

// The shared secret is replaced as deploy/security.md says, by rolling restarts: no request fails, and cores refuse the old secret in
// the end.
func TestSharedSecret_Replaced(t *testing.T) {
	t.Parallel()
	const fresh = "the secret that takes the place of the shared one"
	r := startRelease(t)
	c := newWorkload(t, r.fleet, reads, writes, keyedWrites)
	c.followReadiness()
	r.inUse = func() bool { return c.ready[0].Load() && c.ready[1].Load() }
	r.steps = []func(*testing.T){
		r.share(secret, fresh, secret), r.restartCores,
		r.share(fresh, secret, fresh), r.restartGateways, r.restartCores,
		r.share(fresh, "", fresh), r.restartCores,
	}
	r.roll(t, c, "replacement of the shared secret of 2 gateways and 2 cores", 0)
	for _, server := range r.servers {
		if old, now := server.statusFor(t, secret), server.statusFor(t, fresh); old != http.StatusUnauthorized || now != http.StatusNoContent {
			t.Errorf("core answers %d to the old secret and %d to the new one", old, now)
		}
		if log := server.log.String(); strings.Contains(log, secret) || strings.Contains(log, fresh) {
			t.Error("the log tells a secret")
		}
	}
}

// release is what a new version is rolled out to.
type release struct {
	fleet   []*gateway
	servers []*coreServer
	// inUse reports whether all gateways are sent requests.
	inUse func() bool
	// steps are what one round of a roll does.
	steps []func(*testing.T)
}

func startRelease(t *testing.T) *release {
	t.Helper()
	return startReleaseOf(t, shared.binaries)
}

func startReleaseOf(t *testing.T, binaries string) *release {
	t.Helper()
	servers := []*coreServer{newCoreServer(t), newCoreServer(t)}
	for _, server := range servers {
		server.binaries = binaries
		server.start(t)
	}
	for _, server := range servers {
		server.awaitReady(t)
	}
	r := &release{servers: servers, fleet: startGateways(t, 2, fleetConfig{
		// Longer than HAProxy takes to notice.
		redis: startRedis(t).address, core: urlsOf(servers), binaries: binaries, env: unhurried("GATEWAY_DRAIN_DELAY=1500ms"),
	})}
	r.steps = []func(*testing.T){r.restartGateways, r.restartCores}
	return r
}

// become is the step after which whatever is started is of the version in this directory.
func (r *release) become(binaries string) func(*testing.T) {
	return func(*testing.T) {
		for _, g := range r.fleet {
			g.command.Path = filepath.Join(binaries, "gateway")
		}
		for _, server := range r.servers {
			server.binaries = binaries
		}
	}
}

// share is the step after which whatever is started has these secrets: cores the first two, gateways the third.
func (r *release) share(current, previous, gateways string) func(*testing.T) {
	return func(*testing.T) {
		for _, server := range r.servers {
			server.env = append(server.env, "CORE_GATEWAY_SECRET="+current, "CORE_GATEWAY_SECRET_PREVIOUS="+previous)
		}
		for _, g := range r.fleet {
			g.command.Env = append(g.command.Env, "GATEWAY_CORE_SECRET="+gateways)
		}
	}
}

// roll restarts all of it, and again until the workload has made so many requests, of which none may fail.
func (r *release) roll(t *testing.T, c *workload, name string, least int) {
	t.Helper()
	c.set(2 * members)
	pass(t, time.Second)
	began := time.Now()
	rounds := 0
	for ; rounds == 0 || len(c.soFar()) < least; rounds++ {
		for _, step := range r.steps {
			step(t)
		}
	}
	took := time.Since(began)
	pass(t, 500*time.Millisecond)
	all := c.stop()
	failed := all.failed()
	untold := c.mustHaveKept(t)
	outcomes.tell(t, outcome{
		Fault: name, Gateways: len(r.fleet), Requests: len(all), Errors: len(failed), OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("%d times, in %s; the slowest answer after %s; %d intents kept once", rounds, millis(took), millis(all.slowest()), len(c.acknowledged)),
	})
	all.mustAllSucceed(t, untold, began)
}

// restartGateways ends and starts one after the other, each when the one before is in use again.
func (r *release) restartGateways(t *testing.T) {
	t.Helper()
	for _, g := range r.fleet {
		g.stop(t)
		g.start(t)
		asynctest.Eventually(t, "the gateway is ready", func() bool { return g.ready(t) })
		r.awaitUse(t)
	}
}

func (r *release) restartCores(t *testing.T) {
	t.Helper()
	for _, server := range r.servers {
		server.stop(t)
		server.start(t)
		server.awaitReady(t)
		r.awaitUse(t)
	}
}

func (r *release) awaitUse(t *testing.T) {
	t.Helper()
	asynctest.Eventually(t, "all are in use again", func() bool { return r.inUse() && coresUp(t, r.fleet) == len(r.servers) })
}
