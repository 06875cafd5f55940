package faults_test

import (
	"fmt"
	"testing"
	"time"
)

// members is how many clients a workload has, and so the most requests that are under way at once.
const members = 12

// A gateway that is killed takes only the requests with it that it was answering: what was acknowledged is kept, and what is
// repeated with its Idempotency-Key is there once.
func TestGatewayKilled(t *testing.T) {
	t.Parallel()
	fleet := startGateways(t, 2, fleetConfig{redis: startRedis(t).address, env: unhurried()})
	c := newWorkload(t, fleet, reads, writes, keyedWrites)
	c.retries = true
	beside := startBeside(t, fleet)
	c.set(members)
	pass(t, 1500*time.Millisecond)
	killed := time.Now()
	fleet[0].process.Kill()
	pass(t, 2*time.Second)
	all := c.stop()
	over, _ := endBeside(t, beside)

	lost := all.failed()
	o := outcome{
		Fault: "one of two gateways killed", Gateways: 2, Requests: len(all.hitBy(killed)), Errors: len(lost),
		OverAdmission: over, AddedP99: -1, Recovery: since(killed, all.lastFailure()),
	}
	untold := c.mustHaveKept(t)
	o.Note = fmt.Sprintf("%d intents acknowledged, none lost or doubled, %d made that nobody was told of", len(c.acknowledged), untold)
	outcomes.tell(t, o)
	if len(lost) > members || untold > members {
		t.Errorf("%d requests failed and %d intents are stored that nobody was told of; %d were under way", len(lost), untold, members)
	}
	for _, a := range lost {
		if a.gateway != 0 || a.began.After(killed.Add(within(50*time.Millisecond))) {
			t.Errorf("a request failed that was not under way at the killed gateway:%s", attempts{a}.first(1, killed))
		}
	}
	all.mustBeSound(t)
}
