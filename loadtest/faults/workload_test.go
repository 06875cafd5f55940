package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// members is how many clients a workload has, and so the most requests that are in flight at once.
const members = 12

// workload is clients that each make one request after the other. They go to any gateway, as behind a balancer: what cannot connect
// goes to the next. It keeps what was acknowledged, and checks afterwards what is stored.
type workload struct {
	t       *testing.T
	db      *database
	fleet   []*gateway
	keys    []string
	kinds   []kind
	client  *http.Client
	stopped chan struct{}
	members sync.WaitGroup
	turn    atomic.Int64
	// ready says of each gateway whether it is sent requests.
	ready []atomic.Bool
	// retries has failed keyed writes repeated until they are acknowledged.
	retries bool

	mu  sync.Mutex
	all samples
	// acknowledged has the intents' ids by reference, that of the batch for several; sent has the kind of request of every reference that was sent.
	acknowledged map[string]string
	sent         map[string]kind
}

// pause is the time between two requests of a member.
const pause = 20 * time.Millisecond

// startWorkload starts this many members on gateways whose cores use the database. It repeats keyed writes.
func startWorkload(t *testing.T, db *database, fleet []*gateway, count int, kinds ...kind) *workload {
	t.Helper()
	w := newWorkload(t, db, fleet, kinds...)
	w.retries = true
	w.start(count)
	return w
}

func newWorkload(t *testing.T, db *database, fleet []*gateway, kinds ...kind) *workload {
	t.Helper()
	w := &workload{
		t: t, db: db, fleet: fleet, keys: db.newUnlimitedKeys(t, 4), kinds: kinds, stopped: make(chan struct{}),
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
		ready:  make([]atomic.Bool, len(fleet)), acknowledged: map[string]string{}, sent: map[string]kind{},
	}
	for n := range w.ready {
		w.ready[n].Store(true)
	}
	return w
}

func (w *workload) start(count int) {
	for n := range count {
		w.members.Go(func() { w.work(w.kinds[n%len(w.kinds)], w.keys[n%len(w.keys)]) })
	}
	w.t.Cleanup(func() { w.stop() })
}

// stop ends the work, waits for the last response and returns all samples.
func (w *workload) stop() samples {
	select {
	case <-w.stopped:
	default:
		close(w.stopped)
	}
	w.members.Wait()
	w.client.CloseIdleConnections()
	return w.soFar()
}

func (w *workload) soFar() samples {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// ids are those of the intents that were acknowledged so far.
func (w *workload) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.acknowledged))
}

// awaitMore waits until so many more intents are acknowledged.
func (w *workload) awaitMore(more int) {
	w.t.Helper()
	enough := len(w.ids()) + more
	asynctest.Eventually(w.t, "intents are acknowledged", func() bool { return len(w.ids()) >= enough })
}

// awaitSuccess waits until every kind of request has succeeded that began after a moment, and returns how long that took.
func (w *workload) awaitSuccess(from time.Time) time.Duration {
	w.t.Helper()
	succeeded := map[kind]time.Time{}
	asynctest.Eventually(w.t, "all requests succeed again", func() bool {
		for _, s := range w.soFar() {
			if _, seen := succeeded[s.kind]; !seen && !s.failed() && !s.began.Before(from) {
				succeeded[s.kind] = s.ended()
			}
		}
		return len(succeeded) == len(w.kinds)
	})
	return slices.MaxFunc(slices.Collect(maps.Values(succeeded)), time.Time.Compare).Sub(from)
}

func (w *workload) over() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}

func (w *workload) work(k kind, key string) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for ; !w.over(); <-ticker.C {
		reference := uuid.NewString()
		for w.try(k, key, reference).failed() && w.retries && k.repeatable() && !w.over() {
			<-ticker.C
		}
	}
}

// try makes one request and notes its response.
func (w *workload) try(k kind, key, reference string) sample {
	s := sample{kind: k, key: key, reference: reference, began: time.Now()}
	method, path, body, idempotencyKey := w.request(s)
	var answer []byte
	var err error
	for _, s.gateway = range w.choose() {
		answer, err = s.send(context.WithoutCancel(w.t.Context()), w.client, method, w.fleet[s.gateway].URL+path, body, idempotencyKey)
		if !isDialError(err) {
			break
		}
	}
	s.took = time.Since(s.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, s)
	if k != reads {
		w.sent[reference] = k
	}
	if s.status == http.StatusCreated {
		var created struct{ ID string }
		if err := json.Unmarshal(answer, &created); err != nil {
			w.t.Errorf("a response to POST: %v", err)
		}
		if other, known := w.acknowledged[reference]; known && other != created.ID {
			w.t.Errorf("%s was acknowledged as %s and as %s", reference, other, created.ID)
		}
		w.acknowledged[reference] = created.ID
	}
	return s
}

// isDialError reports whether nothing was sent because nothing listens.
func isDialError(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// batchSize is how many intents a batch has.
const batchSize = 5

// The accounts and the token of every intent.
const (
	payer = "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	payee = "eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	ether = "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
)

// request is what a sample sends, to a path of its gateway. What may be repeated has the reference as its Idempotency-Key.
func (w *workload) request(s sample) (method, path, body, idempotencyKey string) {
	intent := func(reference string) string {
		return fmt.Sprintf(`{"source":{"account":%q,"token":%q,"amount":"1"},"destination":{"account":%q},"reference":%q}`, payer, ether, payee, reference)
	}
	if s.kind.repeatable() {
		idempotencyKey = s.reference
	}
	switch s.kind {
	case reads:
		return http.MethodGet, "/v2/transfers?limit=1", "", ""
	case batches:
		items := make([]string, batchSize)
		for n := range items {
			items[n] = intent(fmt.Sprintf("%s/%d", s.reference, n))
		}
		return http.MethodPost, "/v2/transfers/batch", `{"transfers":[` + strings.Join(items, ",") + `]}`, idempotencyKey
	default:
		return http.MethodPost, "/v2/transfers", intent(s.reference), idempotencyKey
	}
}

// choose goes round the gateways: those that are ready first, and then the others.
func (w *workload) choose() (order []int) {
	turn := int(w.turn.Add(1))
	for _, ready := range []bool{true, false} {
		for n := range w.fleet {
			if n = (turn + n) % len(w.fleet); w.ready[n].Load() == ready {
				order = append(order, n)
			}
		}
	}
	return order
}

// followReadiness has the workload use gateways by their /readyz until the test ends, as a balancer does.
func (w *workload) followReadiness() {
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for n, g := range w.fleet {
		following.Go(func() {
			every(ctx, 100*time.Millisecond, func() { w.ready[n].Store(system.IsOK(w.t, g.OpsURL+"/readyz")) })
		})
	}
	w.t.Cleanup(func() {
		stop()
		following.Wait()
	})
}

// mustBeStored checks that all that was acknowledged is stored under the acknowledged id, and nothing twice. It returns how many
// intents were stored that no client was told of.
func (w *workload) mustBeStored() (untold int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := map[string]string{}
	w.db.connect(w.t, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT reference, id::text FROM transfers WHERE reference = ANY($1)`, slices.Collect(maps.Keys(w.sent)))
		if err != nil {
			return err
		}
		var reference, id string
		_, err = pgx.ForEachRow(rows, []any{&reference, &id}, func() error {
			if other, twice := stored[reference]; twice {
				w.t.Errorf("one %s created both %s and %s", w.sent[reference], other, id)
			}
			stored[reference] = id
			return nil
		})
		return err
	})
	w.mustHaveWholeBatches(stored)
	for reference, id := range w.acknowledged {
		if stored[reference] != id {
			w.t.Errorf("a %s was acknowledged as %s and is stored as %q", w.sent[reference], id, stored[reference])
		}
	}
	w.t.Logf("%d requests, %d failed; %d intents acknowledged, %d stored that no client was told of",
		len(w.all), len(w.all.failed()), len(w.acknowledged), len(stored)-len(w.acknowledged))
	return len(stored) - len(w.acknowledged)
}

// mustHaveWholeBatches checks that each batch that was sent is stored whole, once or not at all, and adds those that are stored.
func (w *workload) mustHaveWholeBatches(stored map[string]string) {
	w.t.Helper()
	var references []string
	for reference, k := range w.sent {
		if k == batches {
			references = append(references, reference)
		}
	}
	w.db.connect(w.t, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT left(reference, 36), coalesce(batch_id::text, ''), count(*), coalesce(max(batches.count), 0)
			FROM transfers LEFT JOIN batches ON batches.account_id = transfers.account_id AND batches.id = batch_id
			WHERE left(reference, 36) = ANY($1) AND reference LIKE '%/%' GROUP BY 1, 2`, references)
		if err != nil {
			return err
		}
		var reference, id string
		var intents, count int
		_, err = pgx.ForEachRow(rows, []any{&reference, &id, &intents, &count}, func() error {
			if other, twice := stored[reference]; twice {
				w.t.Errorf("one batch is stored as %s and as %s", other, id)
			}
			if intents != batchSize || count != batchSize {
				w.t.Errorf("batch %s of %d has %d intents, and says %d", id, batchSize, intents, count)
			}
			stored[reference] = id
			return nil
		})
		return err
	})
}

// mustSucceed ends the work and checks that no request failed, and that clients were told of every intent.
func (w *workload) mustSucceed(since time.Time) samples {
	w.t.Helper()
	all := w.stop()
	failed := all.filter(func(s sample) bool { return s.status != http.StatusOK && s.status != http.StatusCreated })
	if untold := w.mustBeStored(); len(failed) > 0 || untold > 0 {
		w.t.Errorf("%d of %d requests failed, %d intents are stored that no client was told of: %s%s", len(failed), len(all), untold, failed, failed.first(5, since))
	}
	return all
}

// mustList pages through the account's intents by cursor, newest first: each acknowledged one is there once, in the order of the list
// without pages.
func (w *workload) mustList() {
	w.t.Helper()
	var paged []string
	for path := "/v2/transfers?limit=100"; path != ""; {
		var page []string
		page, path = w.list(path)
		paged = append(paged, page...)
	}
	if whole, _ := w.list("/v2/transfers"); !slices.Equal(paged, whole) {
		w.t.Errorf("%d intents by pages, %d in the whole list, or another order", len(paged), len(whole))
	}
	listed := map[string]bool{}
	for _, id := range paged {
		if listed[id] {
			w.t.Errorf("%s is listed twice", id)
		}
		listed[id] = true
	}
	for _, id := range w.ids() {
		if !listed[id] {
			w.t.Errorf("%s was acknowledged and is not listed", id)
		}
	}
}

// list returns the ids at a path and the path of the next page, empty after the last.
func (w *workload) list(path string) (ids []string, next string) {
	w.t.Helper()
	answer := system.NewClient(w.t, w.fleet[0].URL, w.keys[0]).Do(http.MethodGet, path, nil)
	page := system.Expect[[]struct{ ID string }](w.t, answer, http.StatusOK)
	for _, one := range page {
		ids = append(ids, one.ID)
	}
	next, _, _ = strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "<"), ">")
	return ids, next
}
