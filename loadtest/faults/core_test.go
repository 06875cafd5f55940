package faults_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/faultproxy"
)

// The only core is killed again and again amid writes: clients are told at once, nothing acknowledged is lost, a request repeated with
// its Idempotency-Key is stored once, and all succeeds within two seconds of each start.
func TestCore_Killed(t *testing.T) {
	t.Parallel()
	core, fleet := startServices(t, shared.database)
	w := startWorkload(t, shared.database, fleet, members, reads, writes, keyedWrites, batches)
	beside := startBeside(t, fleet)
	kills, recovered, began := times(5, 50), time.Duration(0), time.Now()
	for range kills {
		w.awaitMore(20)
		core.Kill()
		sleep(t, 100*time.Millisecond)
		core.Start(t)
		core.AwaitReady(t)
		recovered = max(recovered, w.awaitSuccess(time.Now()))
	}
	all := w.stop()
	j := stopBeside(t, beside)
	failed := all.failed()
	failed.mustBeUnavailable(t, began)
	if untold := w.mustBeStored(); untold > kills*members {
		t.Errorf("%d intents are stored that no client was told of, more than were in flight", untold)
	}
	t.Logf("killed %d times: 99 in 100 failures told within %s, all succeeded %s after a start at the latest", kills, failed.quantile(0.99), recovered)
	if slow := failed.quantile(0.99); slow > within(100*time.Millisecond) {
		j.late("99 in 100 clients were told only after %s", slow)
	}
	if recovered > within(2*time.Second) {
		j.late("all succeeded again only %s after a start", recovered)
	}
	all.mustBeSound(t)
}

// A gateway that is killed takes only the requests with it that were in flight there.
func TestGateway_Killed(t *testing.T) {
	t.Parallel()
	fleet := startGateways(t, 2, fleetConfig{redis: startRedis(t).url(), env: patient()})
	w := startWorkload(t, shared.database, fleet, members, reads, writes, keyedWrites, batches)
	beside := startBeside(t, fleet)
	sleep(t, time.Second)
	killed := time.Now()
	fleet[0].Kill()
	sleep(t, 2*time.Second)
	all := w.stop()
	stopBeside(t, beside)
	failed := all.failed()
	if untold := w.mustBeStored(); len(failed) > members || untold > members {
		t.Errorf("%d requests failed and %d intents are stored that no client was told of; %d were in flight", len(failed), untold, members)
	}
	for _, s := range failed {
		if s.gateway != 0 || s.began.After(killed.Add(within(50*time.Millisecond))) {
			t.Errorf("a request failed that was not in flight at the killed gateway:%s", samples{s}.first(1, killed))
		}
	}
	all.mustBeSound(t)
}

// upstreamTimeout is the gateways' time limit for core in these tests.
const upstreamTimeout = 2 * time.Second

// One of two cores is killed, and then the other suspended: reads and writes with Idempotency-Key all succeed, and after a second so
// does everything. A key that is revoked meanwhile is refused in time.
func TestCores_HalfFail(t *testing.T) {
	t.Parallel()
	cores := startCores(t, shared.database, 2)
	fleet := startGateways(t, 2, fleetConfig{
		redis: startRedis(t).url(), core: urlsOf(cores), env: patient("GATEWAY_CORE_TIMEOUT=" + upstreamTimeout.String()),
	})
	for _, fault := range []struct {
		name          string
		begin, remedy func()
	}{
		{"killed", cores[0].Kill, func() { cores[0].Start(t) }},
		{"suspended", func() { cores[1].Signal(t, syscall.SIGSTOP) }, func() { cores[1].Signal(t, syscall.SIGCONT) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			w := newWorkload(t, shared.database, fleet, reads, writes, keyedWrites, batches)
			doomed := shared.database.newUnlimitedKeys(t, 1)[0]
			warm(t, fleet, []string{doomed})
			beside := startBeside(t, fleet)
			w.start(members)
			sleep(t, time.Second)
			began := time.Now()
			fault.begin()
			shared.database.execute(t, `UPDATE api_keys SET enabled = false WHERE start = $1`, doomed[:12])
			revoked := time.Now()
			for _, g := range fleet {
				asynctest.Eventually(t, "the revoked key is refused", func() bool {
					one := sample{key: doomed}
					g.get(&one, direct)
					return one.status == http.StatusForbidden
				})
			}
			refused := time.Since(revoked)
			sleep(t, time.Until(began.Add(2*time.Second)))
			fault.remedy()
			asynctest.Eventually(t, "all gateways use both cores again", func() bool { return coresUp(t, fleet) == 2 })
			all := w.stop()
			j := stopBeside(t, beside)

			failed := all.failed()
			t.Logf("failed: %s; the slowest response took %s; the revoked key was refused after %s", failed, all.slowest(), refused)
			report := t.Errorf
			if fault.name == "suspended" { // which only health checks find, and they need the processor in time
				report = j.late
			}
			if repeatable := failed.filter(func(s sample) bool { return s.kind != writes }); len(repeatable) > 0 {
				report("%d requests failed that may be repeated:%s", len(repeatable), repeatable.first(5, began))
			}
			if late := failed.between(began.Add(within(time.Second)), time.Now()); len(late) > 0 || len(failed) > members {
				report("%d requests failed, %d of them began after a second:%s", len(failed), len(late), late.first(5, began))
			}
			if untold := w.mustBeStored(); untold > len(failed.of(writes)) {
				t.Errorf("%d intents are stored that no client was told of", untold)
			}
			if slow := all.slowest(); slow > within(upstreamTimeout) {
				j.late("a request took %s", slow)
			}
			if refused > within(time.Second) {
				j.late("a revoked key was refused only after %s", refused)
			}
			all.mustBeSound(t)
		})
	}
}

// Whatever happens between a gateway and its only core, the gateway sends a write once unless it has an Idempotency-Key, every client
// is told before the deadline, and a client that repeats a write with its key gets the one intent.
func TestCoreLink_Broken(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	proxy := faultproxy.Start(t, shared.Stack.Env().CoreURL[len("http://"):])
	fleet := startGateways(t, 1, fleetConfig{
		redis: startRedis(t).url(), core: "http://" + proxy.Address, env: patient("GATEWAY_CORE_TIMEOUT=" + timeout.String()),
	})
	for _, fault := range []struct {
		name  string
		begin func()
	}{
		{"cut once", proxy.Cut},
		{"refused", proxy.Refuse},
		{"reset", proxy.Reset},
		{"black hole", proxy.BlackHole},
		{"half open", proxy.HalfOpen},
		{"responses dropped", proxy.DropResponses},
		{"cut at the response", proxy.ResetResponses},
	} {
		t.Run(fault.name, func(t *testing.T) {
			w := startWorkload(t, shared.database, fleet, members, reads, writes, keyedWrites, batches)
			beside := startBeside(t, fleet)
			w.awaitMore(members)
			began := time.Now()
			fault.begin()
			sleep(t, timeout+timeout/2)
			proxy.Heal()
			recovered := w.awaitSuccess(time.Now())
			all := w.stop()
			j := stopBeside(t, beside)

			failed := all.failed()
			untold := w.mustBeStored()
			t.Logf("the slowest response took %s; all succeeded %s after the fault", all.since(began).slowest(), recovered)
			others := failed.filter(func(s sample) bool { return s.status != 502 && s.status != 503 && s.status != 504 })
			if len(others) > 0 {
				t.Errorf("%d requests got another status than 502, 503 and 504:%s", len(others), others.first(5, began))
			}
			if lost := len(failed.filter(func(s sample) bool { return s.kind == writes })) + w.unacknowledged(); untold > lost {
				t.Errorf("%d intents are stored that no client was told of, and %d writes failed that were not repeated", untold, lost)
			}
			// The deadline itself, and the way to it and back.
			if slow := all.since(began).slowest(); slow > within(timeout+100*time.Millisecond) {
				j.late("a response took %s, with a deadline of %s", slow, timeout)
			}
			if recovered > within(time.Second) {
				j.late("all succeeded again only %s after the fault", recovered)
			}
			all.mustBeSound(t)
		})
	}
}

// unacknowledged is how many keyed writes had failed when the work ended.
func (w *workload) unacknowledged() (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for reference, k := range w.sent {
		if k.repeatable() && w.acknowledged[reference] == "" {
			count++
		}
	}
	return count
}
