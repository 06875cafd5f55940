package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// dialsPromised is how many connections a second a gateway may ask for while Redis is away.
const dialsPromised = 10

// While Redis is down the stated policy decides: every request has its answer, in time, and Redis is not flooded with
// attempts to reach it.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy string
		fault  fault
		name   string
		env    []string
	}{
		{"local", refused, "Redis stopped, connections refused, fallback local", nil},
		{"open", reset, "Redis stopped, connections reset, fallback open", []string{"GATEWAY_LIMIT_FALLBACK=open"}},
		// A Redis that a busy machine keeps waiting is no Redis that is down.
		{"closed", reset, "Redis stopped, connections reset, fallback closed", unhurried("GATEWAY_LIMIT_FALLBACK=closed")},
	} {
		t.Run(test.policy, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, 1, startRedis(t), test.env...)
			tr.strike(func() {
				tr.proxy.inflict(t, test.fault)
				tr.redis.stop(t)
			})
			pass(t, outage)
			dials := tr.attempts(test.fault)
			tr.end(func() {
				tr.redis.start(t) // empty
				tr.proxy.heal(t)
			})
			o, all := tr.finish(test.name, refilled)
			o.Note = fmt.Sprintf("%.1f dials/s", dials)
			if test.fault == refused {
				o.Note = fmt.Sprintf("at most %.1f dials/s", dials)
			}
			switch test.policy {
			case "open":
				o.OverAdmission = -1 // there is no limit to keep
			case "closed":
				o.Note += ", 503 to all as the policy says"
			}
			outcomes.tell(t, o)
			tr.mustKeep(o)
			if dials > dialsPromised {
				t.Errorf("%.1f dials a second, more than %d", dials, dialsPromised)
			}
			tr.mustFollow(test.policy, o, all)
		})
	}
}

// attempts is how often a second a gateway tried to reach Redis. A connection that is refused reaches no proxy, but
// fails the call that asked for it.
func (tr *trial) attempts(f fault) float64 {
	if f == refused {
		return (tr.watch.total(failedCalls) - tr.failedBefore) / time.Since(tr.struck).Seconds() / float64(len(tr.fleet))
	}
	return tr.dialsASecond()
}

// mustFollow wants that requests were answered as the policy says.
func (tr *trial) mustFollow(policy string, o outcome, all samples) {
	tr.t.Helper()
	during := all.between(tr.broken, tr.ended).filter(func(one sample) bool { return one.due.Add(one.took).Before(tr.ended) })
	switch policy {
	case "local":
		all.mustAnswerAll(tr.t)
		o.mustLimit(tr.t, all, 1) // Redis came back empty
	case "open":
		all.mustAnswerAll(tr.t)
		// Only where Redis named the time of the next request itself is it kept, 1.2 s at most.
		let := during.of(greedy).between(tr.broken.Add(token+watchEvery), tr.ended)
		if len(let.admitted()) != len(let) {
			tr.t.Errorf("without a limit %d of %d requests passed", len(let.admitted()), len(let))
		}
	case "closed":
		if passed := during.admitted(); len(passed) > 0 {
			tr.t.Errorf("%d of %d requests passed although nothing may", len(passed), len(during))
		}
		statuses := during.of(crowd).statuses()
		if statuses[http.StatusServiceUnavailable] != len(during.of(crowd)) {
			tr.t.Errorf("the crowd was answered %v, not 503 alone", statuses)
		}
		after := all.between(tr.healed.Add(o.Recovery+watchEvery), time.Now())
		if failed := after.errors(); len(failed) > 0 {
			tr.t.Errorf("%d of %d requests failed after Redis was back: %v", len(failed), len(after), failed.statuses())
		}
	}
}

// A Redis that takes its time, or all the time, costs a request no more than one that is down, and does not let requests
// pile up.
func TestRedisHung(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		strike func(*trial)
		lasts  time.Duration
	}{
		{"Redis 200 ms slow", func(tr *trial) { tr.proxy.slowBy(tr.t, within(200*time.Millisecond)) }, outage},
		{"Redis behind a black hole", func(tr *trial) { tr.proxy.inflict(tr.t, blackHole) }, outage},
		{"Redis's host gone, no answer to a dial", func(tr *trial) {
			tr.proxy.inflict(tr.t, unanswered)
			tr.proxy.countUnanswered(tr.t)
		}, outage},
		{"Redis stopped in its tracks (SIGSTOP) for 5 s", func(tr *trial) { tr.redis.pause(tr.t) }, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, 1, startRedis(t))
			tr.strike(func() { test.strike(tr) })
			pass(t, test.lasts)
			dials := tr.dialsASecond()
			tr.end(func() {
				tr.redis.resume(t)
				tr.proxy.heal(t)
			})
			o, all := tr.finish(test.name, aftermath)
			goroutines, descriptors := tr.watch.peaks()
			o.Note = fmt.Sprintf("%.1f dials/s, at most %d goroutines (%d before), %d open files (%d before)",
				dials, goroutines, tr.peakBefore[0], descriptors, tr.peakBefore[1])
			outcomes.tell(t, o)
			tr.mustKeep(o)
			all.mustAnswerAll(t)
			if dials > dialsPromised {
				t.Errorf("%.1f dials a second, more than %d", dials, dialsPromised)
			}
			o.mustLimit(t, all, 0) // Redis kept its buckets
			most := pile()
			if goroutines-tr.peakBefore[0] > most {
				tr.judge.late("%d goroutines, %d before: requests pile up", goroutines, tr.peakBefore[0])
			}
			if descriptors-tr.peakBefore[1] > most {
				tr.judge.late("%d open files, %d before: connections pile up", descriptors, tr.peakBefore[1])
			}
		})
	}
}

// pile is how many more requests than usual may be under way: those of the time in which Redis may be waited for. If all
// waited as long as it hangs it would be those of seconds. It is a latency by another name, and judged like one.
func pile() int { return int((crowdRate + greedyRate) * within(200*time.Millisecond) / time.Second) }
