package faults_test

import (
	"fmt"
	"testing"
	"time"
)

// A key's limit holds over all gateways while Redis is there, at each of them while it is not, and over all again as soon
// as it is back.
func TestLimit_SeveralGateways(t *testing.T) {
	t.Parallel()
	const span = 2500 * time.Millisecond
	for _, gateways := range []int{1, 3} {
		t.Run(fmt.Sprint(gateways), func(t *testing.T) {
			t.Parallel()
			redis := startRedis(t)
			proxy := startProxy(t, redis.address)
			fleet := startGateways(t, gateways, fleetConfig{redis: proxy.address, env: []string{patient}})
			w := startWatch(t, fleet)
			keys := newKeys(t, 3)
			rate := gateways * 40 // more than a burst at each of them in the time that each part takes
			part := func(key string) samples {
				l := startLoad(t, fleet, stream{keys: []string{key}, rate: rate})
				pass(t, span)
				all := l.stop()
				all.mustBeSound(t)
				if failed := all.errors(); len(failed) > 0 {
					t.Errorf("%d of %d requests failed: %v", len(failed), len(all), failed.statuses())
				}
				return all
			}
			tell := func(what string, all samples, recovery time.Duration) {
				outcomes.tell(t, outcome{
					Fault: what, Gateways: gateways, Requests: len(all), Errors: len(all.errors()),
					OverAdmission: all.overAdmission(), AddedP99: -1, Recovery: recovery,
					Note: fmt.Sprintf("%d let through, the limit for the time is %d", len(all.admitted()), all.allowance()),
				})
			}

			before := part(keys[0])
			tell("one greedy key: Redis healthy", before, -1)
			mustAdmit(t, before, 1)

			proxy.inflict(t, refused)
			during := part(keys[1])
			tell("one greedy key: Redis down", during, -1)
			mustAdmit(t, during, gateways)

			proxy.heal(t)
			w.heal(t)
			// Whatever its gateway is asked lets it find Redis again; only what is not refused from memory.
			l := startLoad(t, fleet, stream{keys: newKeys(t, 20), rate: rate}, controlStream)
			recovery := w.recovery(t)
			j := newJudge(t, l.stop().of(1))
			after := part(keys[2])
			tell("one greedy key: Redis back", after, recovery)
			mustAdmit(t, after, 1)
			if promise := within(time.Second); recovery > promise {
				j.late("Redis was asked again %s after it was back, later than %s", recovery, promise)
			}
		})
	}
}

// mustAdmit wants that a key asked with from its first request on had its limit let through at so many gateways, to the
// last request, and no more.
func mustAdmit(t *testing.T, all samples, times int) {
	t.Helper()
	admitted, limit := len(all.admitted()), all.allowance()
	if admitted > times*limit {
		t.Errorf("%d of %d requests were let through, more than %d times %d", admitted, len(all), times, limit)
	}
	if admitted < times*burst {
		t.Errorf("only %d of %d requests were let through, fewer than %d times %d", admitted, len(all), times, burst)
	}
}
