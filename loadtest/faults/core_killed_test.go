package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
)

// The only core is killed again and again in the midst of writes: nothing acknowledged is lost, a request repeated with its
// Idempotency-Key is stored once, every intent has one event of its creation, and all is well within two seconds of each start.
func TestCoreKilled(t *testing.T) {
	t.Parallel()
	kills := 5
	if full() {
		kills = 50
	}
	server := startCores(t, 1)[0]
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).address, core: server.url, env: unhurried()})
	c := newWorkload(t, fleet, reads, writes, keyedWrites)
	c.retries = true
	control := startLoad(t, fleet, controlStream)
	began := time.Now()
	c.set(members)
	var recovered time.Duration
	for kill := range kills {
		enough := (kill + 1) * 20
		asynctest.Eventually(t, "intents are acknowledged", func() bool { return c.made() >= enough })
		server.kill()
		server.start(t)
		server.awaitReady(t)
		recovered = max(recovered, c.untilAllSucceed(t, time.Now()))
	}
	all := c.stop()
	j := newJudge(t, control.stop())

	failed := all.failed()
	untold := c.mustHaveKept(t)
	c.mustHaveEvents(t)
	outcomes.tell(t, outcome{
		Fault: fmt.Sprintf("the only core killed %d times", kills), Gateways: 1, Requests: len(all), Errors: len(failed),
		OverAdmission: -1, AddedP99: -1, Recovery: recovered,
		Note: fmt.Sprintf("%d intents kept once, %d made that nobody was told of", len(c.acknowledged), untold),
	})
	failed.mustBeUnavailable(t, began)
	if untold > kills*members {
		t.Errorf("%d intents are stored that nobody was told of, more than were under way", untold)
	}
	if recovered > within(2*time.Second) {
		j.late("all went well again only %s after a start", recovered)
	}
	all.mustBeSound(t)
}

// made is how many intents were acknowledged.
func (c *workload) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acknowledged)
}

// mustHaveEvents wants one event of its creation with every intent that the workload made.
func (c *workload) mustHaveEvents(t *testing.T) {
	t.Helper()
	ids := make([]string, 0, len(c.acknowledged))
	for _, id := range c.acknowledged {
		ids = append(ids, id)
	}
	var wrong int
	c.db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*) FROM unnest($1::uuid[]) AS made (id)
			WHERE (SELECT count(*) FROM events WHERE transfer_id = made.id AND to_status = 'created') <> 1`, ids).Scan(&wrong)
	})
	if wrong > 0 {
		t.Errorf("%d of %d intents have none or several events of their creation", wrong, len(ids))
	}
}
