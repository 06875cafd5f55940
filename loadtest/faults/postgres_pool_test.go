package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/embedded"
)

// All five connections of a core wait for a lock that somebody else holds: clients get 503 and never 500, nothing is lost, the
// processes stay alive, and all is well as soon as the lock is free. Clients are told within a second.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	server, fleet := startServices(t, db, "CORE_DATABASE_CONNECTIONS=5")
	c := newWorkloadOn(t, db, fleet, reads, writes, keyedWrites)
	c.retries = true
	control := startLoad(t, fleet, controlStream)
	c.set(4 * members)
	pass(t, 1500*time.Millisecond)

	var struck, freed time.Time
	dead := 0
	var alive sync.WaitGroup
	watching, stop := context.WithCancel(t.Context())
	alive.Go(func() {
		for watching.Err() == nil {
			if !isOK(t, server.opsURL+"/livez") || !isOK(t, fleet[0].opsURL+"/livez") {
				dead++
			}
			pass(t, watchEvery)
		}
	})
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `LOCK TABLE transfers IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		struck = time.Now()
		pass(t, 4*time.Second)
		freed = time.Now()
		return tx.Rollback(ctx)
	})
	recovered := c.untilAllSucceed(t, freed)
	stop()
	alive.Wait()
	all := c.stop()
	j := newJudge(t, control.stop())

	failed := all.failed()
	untold := c.mustHaveKept(t)
	outcomes.tell(t, outcome{
		Fault: "all connections of core wait for a lock", Gateways: 1, Requests: len(all.hitBy(struck)), Errors: len(failed),
		OverAdmission: -1, AddedP99: -1, Recovery: recovered,
		Note: fmt.Sprintf("99 in 100 refusals within %s, the slowest after %s; %d intents kept once, %d made that nobody was told of",
			millis(failed.p99()), millis(failed.slowest()), len(c.acknowledged), untold),
	})
	if len(failed) == 0 {
		t.Error("no request failed: the fault was not felt")
	}
	failed.mustBeUnavailable(t, struck)
	if slow := failed.slowest(); slow > within(time.Second) {
		j.late("a client was told only after %s", slow)
	}
	if dead > 0 {
		t.Errorf("/livez failed %d times", dead)
	}
	if recovered > within(time.Second) {
		j.late("all went well again only after %s", recovered)
	}
	all.mustBeSound(t)
}
