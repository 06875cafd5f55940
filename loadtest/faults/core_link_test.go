package faults_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// linkTimeout is the gateway's patience with core where the way between them breaks.
const linkTimeout = time.Second

// Whatever happens between a gateway and its only core, a write is sent once unless it has an Idempotency-Key, everybody
// has an answer that says so before the deadline, and a client that repeats a write with its key gets the one intent.
func TestCoreLink_Broken(t *testing.T) {
	t.Parallel()
	proxy := startProxy(t, shared.stack.Env().CoreURL[len("http://"):])
	fleet := startGateways(t, 1, fleetConfig{
		redis: startRedis(t).address, core: proxy.url(), env: unhurried("GATEWAY_CORE_TIMEOUT=" + linkTimeout.String()),
	})
	for _, trial := range []struct {
		name   string
		strike func()
	}{
		{"link to core cut once", proxy.cut},
		{"link to core refused", func() { proxy.inflict(t, refused) }},
		{"link to core reset", func() { proxy.inflict(t, reset) }},
		{"link to core a black hole", func() { proxy.inflict(t, blackHole) }},
		{"link to core half open", proxy.strand},
		{"replies of core dropped", func() { proxy.inflict(t, repliesDropped) }},
		{"link to core cut at the reply", func() { proxy.inflict(t, cutAtReply) }},
	} {
		t.Run(trial.name, func(t *testing.T) {
			c := newWorkload(t, fleet, reads, writes, keyedWrites)
			c.retries = true
			c.pause = 20 * time.Millisecond
			beside := startBeside(t, fleet)
			c.set(members)
			asynctest.Eventually(t, "every member has been answered", func() bool { return len(c.soFar()) >= 4*members })
			struck := time.Now()
			trial.strike()
			pass(t, 1500*time.Millisecond)
			healed := time.Now()
			proxy.heal(t)
			recovered := c.untilAllSucceed(t, healed)
			all := c.stop()
			over, j := endBeside(t, beside)

			hit := all.hitBy(struck)
			failed := all.failed()
			untold := c.mustHaveKept(t)
			o := outcome{
				Fault: trial.name, Gateways: 1, Requests: len(hit), Errors: len(failed), OverAdmission: over, AddedP99: -1, Recovery: recovered,
				Note: fmt.Sprintf("the slowest answer after %s; %d intents kept once, %d made that nobody was told of", millis(hit.slowest()), len(c.acknowledged), untold),
			}
			outcomes.tell(t, o)
			for _, a := range failed {
				if a.status != 502 && a.status != 503 && a.status != 504 {
					t.Errorf("answered %d:%s", a.status, attempts{a}.first(1, struck))
				}
			}
			// The deadline itself, and the way to it and back.
			if slow := hit.slowest(); slow > within(linkTimeout+100*time.Millisecond) {
				j.late("an answer took %s, with a deadline of %s", slow, linkTimeout)
			}
			if lost := len(failed.of(writes)) + c.givenUp(); untold > lost {
				t.Errorf("%d intents are stored that nobody was told of, and %d writes failed that were not repeated", untold, lost)
			}
			if recovered > within(time.Second) {
				j.late("all went well again only after %s", recovered)
			}
			all.mustBeSound(t)
		})
	}
}

// untilAllSucceed waits until every kind of request has succeeded that began after the moment, and tells how long that took.
func (c *workload) untilAllSucceed(t *testing.T, moment time.Time) time.Duration {
	t.Helper()
	var last time.Time
	asynctest.Eventually(t, "all goes well again", func() bool {
		var once sync.Map
		for _, a := range c.soFar().from(moment) {
			if _, seen := once.Load(a.kind); !a.failed() && !seen {
				once.Store(a.kind, a.began.Add(a.took))
			}
		}
		found := 0
		once.Range(func(_, at any) bool {
			found++
			if at := at.(time.Time); at.After(last) {
				last = at
			}
			return true
		})
		return found == len(c.kinds)
	})
	return last.Sub(moment)
}
