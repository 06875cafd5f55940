package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// batched is a write that may be sent with others, by its id.
func batched(id string) request {
	return request{method: fasthttp.MethodPost, body: `{"of":"` + id + `"}`, id: id, batch: true}
}

// repeated is batched with an Idempotency-Key.
func repeated(id string) request {
	r := batched(id)
	r.idempotencyKey = id
	return r
}

// crowd is a core whose three permits are taken by requests that wait, so that all others gather for one batch, for checkInterval at most.
type crowd struct {
	core   *core
	client client
	// batches are the ids in each batch that the core was sent, in their order.
	mu      sync.Mutex
	batches [][]string

	permits chan struct{}
	waiting sync.WaitGroup
}

// permits are how many batches to a core may be without a response.
const permits = 3

// startCrowd answers the requests in batches with the handler.
func startCrowd(t *testing.T, s settings, answer http.HandlerFunc) *crowd {
	t.Helper()
	c := &crowd{permits: make(chan struct{})}
	inner := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get(wire.HeaderRequestID), "permit") {
			select {
			case <-c.permits:
			case <-r.Context().Done():
			}
		}
		answer(w, r)
	}
	c.core = startCore(t, inner)
	c.core.batches.Store(true)
	record := c.core.Config.Handler
	c.core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathBatch {
			body, _ := io.ReadAll(r.Body)
			c.note(body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		record.ServeHTTP(w, r)
	})
	c.client = newClient(t, s, c.core.URL)
	asynctest.Eventually(t, "the core is known to serve batches", func() bool { return c.client.set.All()[0].Batches() })
	for n := range permits {
		c.waiting.Go(func() { c.client.answer(batched(fmt.Sprintf("permit%d", n))) })
	}
	asynctest.Eventually(t, "all permits are taken", func() bool { return c.core.hits.Load() == permits })
	t.Cleanup(c.waiting.Wait)
	t.Cleanup(c.free)
	return c
}

// idsIn are the ids of the requests in a batch.
func idsIn(body []byte) []string {
	messages, _ := wire.SplitBatch(body)
	ids := []string{}
	for _, message := range messages {
		request, _ := coretest.RequestOf(message)
		ids = append(ids, idOf(request))
	}
	return ids
}

func (c *crowd) note(body []byte) {
	ids := idsIn(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, ids)
}

// free answers what has taken the permits.
func (c *crowd) free() {
	select {
	case <-c.permits:
	default:
		close(c.permits)
	}
}

// all makes requests that wait for a permit, frees the permits, and returns the answers by id.
func (c *crowd) all(t *testing.T, requests ...request) map[string]string {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	answers := map[string]string{}
	for _, r := range requests {
		running.Go(func() {
			answer := c.client.answer(r)
			mu.Lock()
			defer mu.Unlock()
			answers[r.id] = answer
		})
	}
	pause(t, 30*time.Millisecond) // they gather; where this is too short, the batches are smaller
	c.free()
	running.Wait()
	return answers
}

// idOf is the id of a request at the core.
func idOf(r *http.Request) string { return r.Header.Get(wire.HeaderRequestID) }

// Requests that wait for the same core are sent as one, and each gets its own response.
func TestBatch_Answers(t *testing.T) {
	t.Parallel()
	c := startCrowd(t, settings{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "/"+idOf(r))
		if idOf(r) == "7" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, body, r.Header.Get("Idempotency-Key"))
	})
	var requests []request
	want := map[string]string{}
	for n := range 100 {
		r := batched(fmt.Sprint(n))
		if n%2 == 0 {
			r = repeated(r.id)
		}
		requests, want[r.id] = append(requests, r), fmt.Sprintf("POST /v2/transfers?a=%%2e %s %s", r.body, r.idempotencyKey)
	}
	if diff := cmp.Diff(want, c.all(t, requests...)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count, longest := 0, 0
	for _, ids := range c.batches {
		count, longest = count+len(ids), max(longest, len(ids))
	}
	if count == 0 || longest < 2 || longest > wire.MaxBatchRequests {
		t.Errorf("%d requests came in batches, the longest of %d", count, longest)
	}
	if retries := c.client.retries(t); retries != 0 {
		t.Errorf("%v requests were sent twice", retries)
	}
}

// A lone request is sent as it would be without batches, and so are those that must not be sent with others, to a core that serves none, and a
// long one.
func TestBatch_Alone(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }
	t.Run("lone", func(t *testing.T) {
		t.Parallel()
		c := startCrowd(t, settings{}, answer)
		c.free()
		c.waiting.Wait()
		for n := range 5 {
			if got := c.client.answer(batched(fmt.Sprint(n))); got != "/v2/transfers" {
				t.Errorf("answered %q", got)
			}
		}
		if len(c.batches) != 0 {
			t.Errorf("sent in batches: %v", c.batches)
		}
	})
	for name, change := range map[string]func(*request){
		"of a route without batches": func(r *request) { r.batch = false },
		"long":                       func(r *request) { r.body = strings.Repeat(" ", wire.MaxBatchedBytes+1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCrowd(t, settings{}, answer)
			for n := range 5 {
				r := batched(fmt.Sprint(n))
				change(&r)
				if got := c.client.answer(r); got != "/v2/transfers" { // though the permits are taken
					t.Errorf("answered %q", got)
				}
			}
			if len(c.batches) != 0 {
				t.Errorf("sent in batches: %v", c.batches)
			}
		})
	}
}

// A core that has said that it serves batches, and does not, gets each request alone.
func TestBatch_CoreWithout(t *testing.T) {
	t.Parallel()
	c := startCrowd(t, settings{}, name("alone"))
	served := c.core.Config.Handler
	c.core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathBatch {
			w.Header().Set(wire.HeaderCore, wire.CoreRefused)
			http.NotFound(w, r)
			return
		}
		served.ServeHTTP(w, r)
	})
	for id, got := range c.all(t, batched("a"), batched("b"), repeated("c"), batched("d")) {
		if got != "alone" {
			t.Errorf("%s: answered %q", id, got)
		}
	}
	if retries := c.client.retries(t); retries != 4 {
		t.Errorf("%v requests count as sent twice, want 4", retries)
	}
}

// A core of another release, whose frames have another version, gets each request alone: before its upgrade, and after it went back.
func TestBatch_OtherVersion(t *testing.T) {
	t.Parallel()
	var version atomic.Value
	version.Store("2")
	var probes, batches atomic.Int64
	core := startCore(t, name("alone"))
	served := core.Config.Handler
	core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case wire.PathReady:
			w.Header().Set(wire.HeaderBatch, version.Load().(string))
			w.WriteHeader(http.StatusNoContent)
			probes.Add(1)
		case wire.PathBatch:
			batches.Add(1)
			w.WriteHeader(http.StatusBadRequest)
		default:
			served.ServeHTTP(w, r)
		}
	})
	client := newClient(t, settings{}, core.URL)
	expectAlone := func() {
		t.Helper()
		var running sync.WaitGroup
		for n := range 4 * permits {
			running.Go(func() {
				if got := client.answer(batched(fmt.Sprint(n))); got != "alone" {
					t.Errorf("request %d: answered %q", n, got)
				}
			})
		}
		running.Wait()
		if sent := batches.Load(); sent != 0 {
			t.Errorf("%d batches were sent", sent)
		}
	}
	asynctest.Eventually(t, "the core is probed twice", func() bool { return probes.Load() > 1 })
	expectAlone()
	takesBatches := client.set.All()[0].Batches
	version.Store(wire.BatchVersion)
	asynctest.Eventually(t, "the upgraded core is known to serve batches", takesBatches)
	version.Store("2")
	asynctest.Eventually(t, "the core that went back is known to serve none", func() bool { return !takesBatches() })
	expectAlone()
}

// A connection that breaks in the middle of a batch leaves the responses that have arrived. Of the others, those with an Idempotency-Key are
// sent a second time.
func TestBatch_BrokenOff(t *testing.T) {
	t.Parallel()
	var answered atomic.Int64
	seen := sync.Map{}
	c := startCrowd(t, settings{}, func(w http.ResponseWriter, r *http.Request) {
		_, again := seen.LoadOrStore(idOf(r), true)
		if strings.HasPrefix(idOf(r), "good") || strings.HasPrefix(idOf(r), "permit") || again {
			answered.Add(1)
			_, _ = io.WriteString(w, "fine")
			return
		}
		panic(http.ErrAbortHandler)
	})
	got := c.all(t, batched("good1"), batched("bad"), repeated("keyed"), batched("good2"))
	want := map[string]string{"good1": "fine", "good2": "fine", "bad": upstream.ErrBroken.Error(), "keyed": "fine"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s\nbatches: %v", diff, c.batches)
	}
}

// A request that core does not answer keeps nobody else waiting, neither those of its batch nor those that come later, and ends at its own
// deadline.
func TestBatch_SlowMember(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	c := startCrowd(t, settings{timeout: timeout}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(idOf(r), "slow") {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "fine")
	})
	began := time.Now()
	if got := c.client.answer(batched("beside")); got != "fine" { // though requests that were sent alone hold the permits
		t.Errorf("answered %q", got)
	}
	if took := time.Since(began); took > timeout/2 {
		t.Errorf("a request beside three that are not answered took %s", took)
	}
	var slow sync.WaitGroup
	for n := range 2 * permits { // more than there are permits
		slow.Go(func() {
			began := time.Now()
			if got := c.client.answer(batched(fmt.Sprintf("slow%d", n))); got != upstream.ErrTimeout.Error() {
				t.Errorf("the request that is not answered: %q", got)
			}
			if took := time.Since(began); took < timeout {
				t.Errorf("it ended after %s", took)
			}
		})
	}
	var requests []request
	for n := range 20 {
		requests = append(requests, batched(fmt.Sprint(n)))
	}
	began = time.Now()
	for id, got := range c.all(t, requests...) {
		if got != "fine" {
			t.Errorf("%s: answered %q", id, got)
		}
	}
	if got := c.client.answer(batched("later")); got != "fine" {
		t.Errorf("a later one: answered %q", got)
	}
	if took := time.Since(began); took > timeout/2 {
		t.Errorf("the others took %s", took)
	}
	slow.Wait()
}

// peerGone is a client that has disconnected.
type peerGone struct{}

func (peerGone) Disconnected() bool { return true }

// A client that disconnects ends its own request alone.
func TestBatch_ClientGone(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := startCrowd(t, settings{}, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(idOf(r), "permit") {
			<-release
		}
		_, _ = io.WriteString(w, "fine")
	})
	left := batched("left")
	left.peer = peerGone{}
	var stay []request
	for n := range 5 {
		stay = append(stay, batched(fmt.Sprint(n)))
	}
	gone := make(chan string, 1)
	go func() {
		gone <- c.client.answer(left)
		close(release)
	}()
	for id, got := range c.all(t, stay...) {
		if got != "fine" {
			t.Errorf("%s: answered %q", id, got)
		}
	}
	if got := <-gone; got != upstream.ErrClientGone.Error() {
		t.Errorf("the client that has gone: %q", got)
	}
}

// A core that rejects the shared secret has carried nothing out.
func TestBatch_SecretRejected(t *testing.T) {
	t.Parallel()
	c := startCrowd(t, settings{}, name("carried out"))
	served := c.core.Config.Handler
	c.core.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(idOf(r), "permit") || r.URL.Path == wire.PathReady {
			served.ServeHTTP(w, r)
			return
		}
		w.Header().Set(wire.HeaderCore, wire.CoreRefused)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"NOT_A_GATEWAY","message":"no"}`)
	})
	for id, got := range c.all(t, batched("a"), batched("b"), repeated("c")) {
		if want := upstream.ErrUnreachable.Error() + ": it rejects GATEWAY_CORE_SECRET"; got != want {
			t.Errorf("%s: answered %q", id, got)
		}
	}
}
