package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// feedWriters is how many clients write while the feed is read.
const feedWriters = 16

// Core is killed again and again, and Postgres stopped at once, while 16 clients write and three read: each reader has every event once,
// in one order.
func TestFeedKilled(t *testing.T) {
	t.Parallel()
	kills, stops := 4, 1
	if full() {
		kills, stops = 30, 5
	}
	db := startDatabase(t, embedded.PostgresConfig{})
	server, fleet := startServices(t, db)
	c := newWorkloadOn(t, db, fleet, keyedWrites)
	c.retries = true
	readers := startFeedReaders(t, fleet[0], c.keys, 1, 7, 100)
	c.set(feedWriters)
	cancels := startCancels(t, c)
	for kill := range kills {
		awaitMore(t, c, 20)
		server.kill()
		if kill%(kills/stops) == 0 {
			if err := syscall.Kill(db.server.PID(), syscall.SIGQUIT); err != nil {
				t.Fatal(err)
			}
			<-db.server.Done()
			if err := db.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		server.start(t)
		server.awaitReady(t)
	}
	awaitMore(t, c, 20)
	all := c.stop()
	cancelled := cancels()
	c.mustHaveKept(t)
	events := mustHaveReadAll(t, db, readers)
	outcomes.tell(t, outcome{
		Fault: fmt.Sprintf("core killed %d times and Postgres stopped %d times under three readers of the feed", kills, stops), Gateways: 1,
		Requests: len(all), Errors: len(all.failed()), OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("%d events of %d intents, %d of them cancelled, read by each once and in one order; %d reads failed meanwhile",
			events, len(c.acknowledged), cancelled, readers[0].failures+readers[1].failures+readers[2].failures),
	})
}

// The primary is lost and its standby promoted: readers go on from the cursors they have, and miss and double nothing.
func TestFeedFailover(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	standby, err := db.server.StartReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	server, fleet := startServices(t, db)
	c := newWorkloadOn(t, db, fleet, keyedWrites)
	c.retries = true
	readers := startFeedReaders(t, fleet[0], c.keys, 3, 100)
	c.set(feedWriters)
	cancels := startCancels(t, c)
	awaitMore(t, c, 100)
	c.stop()
	cancels()
	now := time.Now()
	for _, r := range readers {
		r.awaitEnd(now)
	}
	before := len(readers[0].soFar())
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		var caughtUp bool
		asynctest.Eventually(t, "the standby has everything", func() bool {
			err := conn.QueryRow(ctx, `SELECT replay_lsn = pg_current_wal_insert_lsn() FROM pg_stat_replication`).Scan(&caughtUp)
			return err == nil && caughtUp
		})
		return nil
	})

	server.kill()
	if err := syscall.Kill(db.server.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-db.server.Done()
	db.url = standby.URL
	db.execute(t, `SELECT pg_promote()`)
	server.env = append(server.env, "CORE_DATABASE_URL="+db.url)
	server.start(t)
	server.awaitReady(t)
	again := newWorkloadOn(t, db, fleet, keyedWrites)
	again.retries = true
	again.set(feedWriters)
	cancels = startCancels(t, again)
	awaitMore(t, again, 100)
	all := again.stop()
	cancels()
	events := mustHaveReadAll(t, db, readers)
	if before == 0 || events <= before {
		t.Errorf("%d events before the failover and %d after", before, events)
	}
	outcomes.tell(t, outcome{
		Fault: "Postgres's primary lost, its standby promoted, under two readers of the feed", Gateways: 1, Requests: len(all), Errors: len(all.failed()),
		OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("%d events before and %d after, read by each once and in one order, with the cursors of before", before, events-before),
	})
}

// awaitMore waits until the workload has so many more intents acknowledged.
func awaitMore(t *testing.T, c *workload, more int) {
	t.Helper()
	enough := c.made() + more
	asynctest.Eventually(t, "intents are acknowledged", func() bool { return c.made() >= enough })
}

// startCancels cancels every other intent of the workload until the returned function is called, which says how many it cancelled.
func startCancels(t *testing.T, c *workload) (stop func() (cancelled int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	cancelled := 0
	running.Go(func() {
		tried := map[string]bool{}
		for ctx.Err() == nil {
			for _, id := range c.everyOther(tried) {
				if status, err := c.cancelIntent(ctx, id); err == nil && status == http.StatusOK {
					cancelled++
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(c.pause):
			}
		}
	})
	stop = func() int {
		cancel()
		running.Wait()
		return cancelled
	}
	t.Cleanup(func() { stop() })
	return stop
}

// everyOther is half of the acknowledged intents that were not tried before.
func (c *workload) everyOther(tried map[string]bool) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.acknowledged {
		if !tried[id] {
			if tried[id] = true; len(tried)%2 == 0 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (c *workload) cancelIntent(ctx context.Context, id string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.fleet[0].url+"/v2/transfers/"+id+"/cancel", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Api-Key", c.keys[0])
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
