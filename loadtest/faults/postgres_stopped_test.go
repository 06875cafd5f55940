package faults_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// Postgres stopped as by `pg_ctl -m immediate`, and its postmaster killed, under load: clients get 503 with Retry-After at
// once and never 500, nothing acknowledged is lost, and all is well within seconds of its start.
func TestPostgresStopped(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{
		"Postgres stopped immediately": syscall.SIGQUIT,
		"Postgres's postmaster killed": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := startDatabase(t, embedded.PostgresConfig{})
			_, fleet := startServices(t, db)
			c := newWorkloadOn(t, db, fleet, reads, writes, keyedWrites)
			c.retries = true
			control := startLoad(t, fleet, controlStream)
			c.set(members)
			pass(t, 1500*time.Millisecond)

			struck := time.Now()
			if err := syscall.Kill(db.server.PID(), signal); err != nil {
				t.Fatal(err)
			}
			<-db.server.Done()
			pass(t, 2*time.Second)
			down := time.Now()
			if err := db.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			healed := time.Now()
			recovered := c.untilAllSucceed(t, healed)
			all := c.stop()
			j := newJudge(t, control.stop())

			failed := all.failed()
			untold := c.mustHaveKept(t)
			outcomes.tell(t, outcome{
				Fault: name, Gateways: 1, Requests: len(all.hitBy(struck)), Errors: len(failed),
				OverAdmission: -1, AddedP99: -1, Recovery: recovered,
				Note: fmt.Sprintf("slowest 503 after %s; started in %s; %d intents kept once, %d made that nobody was told of",
					millis(failed.slowest()), millis(healed.Sub(down)), len(c.acknowledged), untold),
			})
			if len(failed) == 0 {
				t.Error("no request failed: the fault was not felt")
			}
			failed.mustBeUnavailable(t, struck)
			// Those under way when Postgres went may have been stored without an answer.
			if untold > members {
				t.Errorf("%d intents are stored that nobody was told of, more than were under way", untold)
			}
			if slow := failed.slowest(); slow > within(time.Second) {
				j.late("a client was told only after %s", slow)
			}
			if recovered > within(5*time.Second) {
				j.late("all went well again only after %s", recovered)
			}
			all.mustBeSound(t)
		})
	}
}
