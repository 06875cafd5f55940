package faults_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// feedWriters is how many clients write while the feed is read.
const feedWriters = 16

// Two cores are killed in turns, and Postgres fails over to its standby, while 16 clients write, three read the feed and a webhook gets
// it: each reader has every event once, in one order, and goes on from the cursor it has. Every event is delivered, repeated ones with
// the same id and body, and attempts that a crash cut off are made again.
func TestFeed_Killed(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	standby, err := db.server.StartReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	// What clients and readers have seen is at the standby too.
	db.execute(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	db.execute(t, `SELECT pg_reload_conf()`)

	cores := startCores(t, db, 2, webhookSettings(t)...)
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).url(), core: urlsOf(cores), env: patient()})
	w := newWorkload(t, db, fleet, keyedWrites)
	w.retries = true
	receiver := startReceiver(t, fleet[0], w.keys[3])
	var readers []*feedReader
	for n, limit := range []int{1, 7, 100} {
		readers = append(readers, startFeedReader(t, fleet[0], w.keys[n], limit))
	}
	w.start(feedWriters)
	cancelled := startCancels(t, w)
	killInTurns := func(kills int) {
		for n := range kills {
			w.awaitMore(20)
			core := cores[n%len(cores)]
			core.Kill()
			core.Start(t)
			core.AwaitReady(t)
		}
	}
	kills := times(2, 15)
	killInTurns(kills)
	w.awaitMore(20)
	if err := syscall.Kill(db.server.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-db.server.Done()
	db.url = standby.URL
	db.execute(t, `SELECT pg_promote()`)
	for _, core := range cores {
		core.Kill()
		core.Command.Env = append(core.Command.Env, "CORE_DATABASE_URL="+db.url)
		core.Start(t)
	}
	killInTurns(kills)
	w.awaitMore(20)
	w.stop()
	t.Logf("%d of the intents were cancelled", cancelled())
	w.mustBeStored()
	// Instead of waiting for the end of the leases of cores that were killed.
	db.execute(t, `UPDATE webhooks SET lease_until = '-infinity'`)
	db.execute(t, `UPDATE deliveries SET next_attempt_at = now() WHERE status = 'pending'`)
	mustDeliver(t, receiver, mustHaveReadAll(t, db, readers))
}

// webhookSettings let cores deliver to receivers of this machine.
func webhookSettings(t *testing.T) []string {
	t.Helper()
	key := sha256.Sum256([]byte(t.Name()))
	return []string{"CORE_WEBHOOK_SECRET_KEY=" + base64.StdEncoding.EncodeToString(key[:]), "CORE_WEBHOOK_ALLOW=127.0.0.0/8"}
}

// startCancels cancels every other intent of the workload until the returned function is called, which returns how many it cancelled.
func startCancels(t *testing.T, w *workload) (stop func() (cancelled int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	cancelled, tried := 0, map[string]bool{}
	running.Go(func() {
		for ; ctx.Err() == nil; sleep(t, pause) {
			for _, id := range w.ids() {
				if tried[id] {
					continue
				}
				if tried[id] = true; len(tried)%2 == 0 && w.cancelIntent(ctx, id) {
					cancelled++
				}
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

func (w *workload) cancelIntent(ctx context.Context, id string) (cancelled bool) {
	var s sample
	s.key = w.keys[0]
	_, _ = s.send(ctx, w.client, http.MethodPost, w.fleet[0].URL+"/v2/transfers/"+id+"/cancel", "", "")
	return s.status == http.StatusOK
}

// feedEvent is what the tests compare of an event of GET /v2/events.
type feedEvent struct {
	ID, Type, Timestamp string
	Sequence            int
	Data                struct{ ID, Status string }
}

// feedReader reads the feed of the key's account from its beginning, page by page, and goes on from its cursor after every failure.
type feedReader struct {
	t            *testing.T
	gateway, key string
	limit        int
	client       *http.Client
	running      sync.WaitGroup
	cancel       context.CancelFunc

	mu     sync.Mutex
	events []feedEvent
	// delays are how long after its timestamp each event was read.
	delays []time.Duration
	cursor string
	// idleSince is when the reader reached the end of the feed, zero while there may be more.
	idleSince time.Time
}

func startFeedReader(t *testing.T, g *gateway, key string, limit int) *feedReader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &feedReader{t: t, gateway: g.URL, key: key, limit: limit, client: &http.Client{Timeout: 40 * time.Second}, cancel: cancel}
	r.running.Go(func() { r.run(ctx) })
	t.Cleanup(r.stop)
	return r
}

func (r *feedReader) stop() {
	r.cancel()
	r.running.Wait()
	r.client.CloseIdleConnections()
}

func (r *feedReader) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		events, next, err := r.read(ctx)
		if err != nil {
			sleep(r.t, pause)
			continue
		}
		now := time.Now()
		r.mu.Lock()
		for _, e := range events {
			if happened, err := time.Parse(time.RFC3339Nano, e.Timestamp); err == nil {
				r.delays = append(r.delays, now.Sub(happened))
			}
		}
		r.events, r.cursor, r.idleSince = append(r.events, events...), next, time.Time{}
		if len(events) == 0 {
			r.idleSince = began
		}
		r.mu.Unlock()
	}
}

// read requests the next page, and waits for a second where there is none.
func (r *feedReader) read(ctx context.Context) (events []feedEvent, next string, err error) {
	query := url.Values{"limit": {fmt.Sprint(r.limit)}, "wait": {"1"}}
	if r.cursor != "" {
		query.Set("after", r.cursor)
	}
	s := sample{key: r.key}
	body, err := s.send(ctx, r.client, http.MethodGet, r.gateway+"/v2/events?"+query.Encode(), "", "")
	if err != nil {
		return nil, "", err
	}
	if s.status != http.StatusOK {
		if s.status < http.StatusInternalServerError {
			r.t.Errorf("a reader was answered %d", s.status)
		}
		return nil, "", fmt.Errorf("answered %d", s.status)
	}
	var page struct {
		Events []feedEvent
		Next   string
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, "", err
	}
	if page.Next == "" || len(page.Events) > r.limit {
		r.t.Errorf("a page of %d events has the cursor %q", len(page.Events), page.Next)
	}
	return page.Events, page.Next, nil
}

// mustHaveReadAll stops the readers once they have read to the end, and returns the ids of the events. Each must have every event of the
// database once, all in one order, and those of each intent by their sequence from 1 without a gap.
func mustHaveReadAll(t *testing.T, db *database, readers []*feedReader) (ids map[string]bool) {
	t.Helper()
	now := time.Now()
	for _, r := range readers {
		asynctest.Completes(t, "a reader has read to the end", func() (read int, atEnd bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.events), r.idleSince.After(now)
		})
		r.stop()
	}
	var stored int
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*) FROM events WHERE account_id = $1`, db.owner).Scan(&stored)
	})
	for n, r := range readers {
		if len(r.events) != stored || !slices.Equal(r.events, readers[0].events) {
			t.Errorf("reader %d has %d events of %d, or another order than the first", n, len(r.events), stored)
		}
	}
	ids = map[string]bool{}
	last := map[string]int{}
	for _, e := range readers[0].events {
		if ids[e.ID] {
			t.Errorf("readers have %s twice", e.ID)
		}
		ids[e.ID] = true
		if e.Sequence != last[e.Data.ID]+1 {
			t.Errorf("%s of %s has the sequence %d after %d", e.Type, e.Data.ID, e.Sequence, last[e.Data.ID])
		}
		last[e.Data.ID] = e.Sequence
	}
	t.Logf("%d events, read by each once and in one order", len(ids))
	return ids
}

// startReceiver starts a receiver for all events of the key's account, until the test ends.
func startReceiver(t *testing.T, g *gateway, key string) *system.Receiver {
	t.Helper()
	r := system.StartReceiver(t)
	made := system.NewClient(t, g.URL, key).Do(http.MethodPost, "/v2/webhooks", map[string]string{"url": r.URL})
	system.Expect[any](t, made, http.StatusCreated)
	return r
}

// mustDeliver waits until every event is delivered. None may be missing in the feed, nor repeated with another body.
func mustDeliver(t *testing.T, r *system.Receiver, ids map[string]bool) {
	t.Helper()
	var all map[string][]system.Delivery
	asynctest.Completes(t, "every event is delivered", func() (arrived int, complete bool) {
		all = r.All()
		for id := range ids {
			if all[id] == nil {
				return len(all), false
			}
		}
		return len(all), true
	})
	attempts := 0
	for id, deliveries := range all {
		attempts += len(deliveries)
		if !ids[id] {
			t.Errorf("%s was delivered and is not in the feed", id)
		}
		for _, d := range deliveries {
			if !bytes.Equal(d.Body, deliveries[0].Body) {
				t.Errorf("%s was repeated with another body", id)
			}
		}
	}
	t.Logf("delivered by %d attempts", attempts)
}
