package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// upstreamTimeout is the gateways' patience with core in these tests.
const upstreamTimeout = 3 * time.Second

// Half of the cores killed, and then the other half stopped in its tracks: reads and writes with Idempotency-Key all
// succeed, and after a second so does everything. A key that is revoked at that moment is refused in time.
func TestCores_HalfFail(t *testing.T) {
	t.Parallel()
	servers := startCores(t, 2)
	fleet := startGateways(t, 2, fleetConfig{
		redis: startRedis(t).address, core: urlsOf(servers), env: unhurried("GATEWAY_CORE_TIMEOUT=" + upstreamTimeout.String()),
	})
	for _, fault := range []struct {
		name            string
		inflict, remedy func()
	}{
		{"one of two cores killed", servers[0].kill, func() { servers[0].start(t); servers[0].awaitReady(t) }},
		{"one of two cores stopped in its tracks", func() { servers[1].pause(t) }, servers[1].resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			c := newWorkload(t, fleet, reads, writes, keyedWrites)
			doomed := newBoundlessKeys(t, 1)[0]
			warm(t, fleet, []string{doomed})
			beside := startBeside(t, fleet)
			c.set(members)
			pass(t, 1500*time.Millisecond)
			before := c.soFar()
			struck := time.Now()
			fault.inflict()
			shared.database.execute(t, `UPDATE api_keys SET enabled = false WHERE start = $1`, doomed[:12])
			revoked := time.Now()
			refusedAfter := untilRefused(t, fleet, doomed, revoked)
			pass(t, time.Until(struck.Add(2500*time.Millisecond)))
			fault.remedy()
			healed := time.Now()
			asynctest.Eventually(t, "all gateways use both cores again", func() bool { return coresUp(t, fleet) == 2 })
			back := time.Since(healed)
			all := c.stop()
			over, j := endBeside(t, beside)

			hit := all.hitBy(struck)
			failed := all.failed()
			o := outcome{
				Fault: fault.name, Gateways: 2, Requests: len(hit), Errors: len(failed),
				OverAdmission: over, AddedP99: max(0, hit.p99()-before.p99()), Recovery: back,
				Note: fmt.Sprintf("failed: %d GET, %d POST with key, %d POST, the last %s after it began; a key revoked then refused after %s; %d intents kept once",
					len(failed.of(reads)), len(failed.of(keyedWrites)), len(failed.of(writes)), lastBegan(failed, struck), millis(refusedAfter), len(c.acknowledged)),
			}
			outcomes.tell(t, o)
			for _, k := range []kind{reads, keyedWrites} {
				if some := failed.of(k); len(some) > 0 {
					t.Errorf("%d of %d failed:%s", len(some), len(hit.of(k)), some.first(5, struck))
				}
			}
			if some := failed.from(struck.Add(within(time.Second))); len(some) > 0 {
				t.Errorf("%d requests failed that began after a second:%s", len(some), some.first(5, struck))
			}
			if len(failed) > members {
				t.Errorf("%d requests failed, more than were under way: %s", len(failed), failed)
			}
			if slow := hit.slowest(); slow > within(upstreamTimeout) {
				j.late("a request took %s", slow)
			}
			if refusedAfter > within(time.Second) {
				j.late("a revoked key was refused only after %s", refusedAfter)
			}
			if untold := c.mustHaveKept(t); untold > len(failed.of(writes)) {
				t.Errorf("%d intents are stored that nobody was told of", untold)
			}
			all.mustBeSound(t)
		})
	}
}

// untilRefused asks every gateway with the key until none lets it in.
func untilRefused(t *testing.T, fleet []*gateway, key string, revoked time.Time) time.Duration {
	t.Helper()
	for _, g := range fleet {
		asynctest.Eventually(t, "the key is refused", func() bool {
			request, err := getChains(g.url, key)
			if err != nil {
				t.Fatal(err)
			}
			response, err := direct.Do(request)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			return response.StatusCode == http.StatusForbidden
		})
	}
	return time.Since(revoked)
}

// lastBegan is how long after the moment the last of them began.
func lastBegan(some attempts, moment time.Time) string {
	last := moment
	for _, one := range some {
		if one.began.After(last) {
			last = one.began
		}
	}
	return millis(last.Sub(moment))
}
