package faults_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// receiver is a webhook endpoint, which keeps the body of each event by its webhook-id.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	bodies   map[string][]byte
	attempts int
	changed  []string
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{bodies: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // core was killed while it sent
		}
		id := request.Header.Get("Webhook-Id")
		r.mu.Lock()
		defer r.mu.Unlock()
		if known, again := r.bodies[id]; again && !bytes.Equal(known, body) {
			r.changed = append(r.changed, id)
		}
		r.bodies[id] = body
		r.attempts++
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// has returns how many events have arrived, and whether these are among them.
func (r *receiver) has(ids map[string]bool) (arrived int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		if _, ok := r.bodies[id]; !ok {
			return len(r.bodies), false
		}
	}
	return len(r.bodies), true
}

// Two cores are killed in turns while they deliver: every event of the feed arrives, repeated ones with the same id and body, and attempts
// that a crash cut off are made again.
func TestDeliveryKilled(t *testing.T) {
	t.Parallel()
	kills := 4
	if full() {
		kills = 20
	}
	db := startDatabase(t, embedded.PostgresConfig{})
	servers := []*coreServer{newCoreServerOn(t, db), newCoreServerOn(t, db)}
	key := sha256.Sum256([]byte(t.Name()))
	for _, s := range servers {
		s.env = append(s.env, "CORE_WEBHOOK_SECRET_KEY="+base64.StdEncoding.EncodeToString(key[:]), "CORE_WEBHOOK_ALLOW=127.0.0.0/8")
		s.start(t)
		s.awaitReady(t)
	}
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).address, core: urlsOf(servers), env: unhurried()})
	c := newWorkloadOn(t, db, fleet, keyedWrites)
	c.retries = true
	target := startReceiver(t)
	createWebhook(t, fleet[0], c.keys[0], target.URL)
	readers := startFeedReaders(t, fleet[0], c.keys, 100)
	c.set(feedWriters)
	for kill := range kills {
		awaitMore(t, c, 20)
		s := servers[kill%len(servers)]
		s.kill()
		s.start(t)
		s.awaitReady(t)
	}
	c.stop()
	stopped := time.Now()
	readers[0].awaitEnd(stopped)
	expected := map[string]bool{}
	for _, e := range readers[0].soFar() {
		expected[e.ID] = true
	}
	asynctest.Completes(t, "every event is delivered", func() (int, bool) { return target.has(expected) })
	target.mu.Lock()
	defer target.mu.Unlock()
	for id := range target.bodies {
		if !expected[id] {
			t.Errorf("%s was delivered and is not in the feed", id)
		}
	}
	if len(target.changed) > 0 {
		t.Errorf("%d events were repeated with another body", len(target.changed))
	}
	outcomes.tell(t, outcome{
		Fault: fmt.Sprintf("two cores killed %d times while they deliver", kills), Gateways: 1, OverAdmission: -1, AddedP99: -1,
		Recovery: time.Since(stopped),
		Note:     fmt.Sprintf("%d events delivered by %d attempts, repeated ones with the same id and body", len(expected), target.attempts),
	})
}

// createWebhook makes an endpoint that hears all events of the key's account and environment.
func createWebhook(t *testing.T, g *gateway, key, url string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v2/webhooks", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Content-Type", "application/json")
	response, err := direct.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("create a webhook: %s %s", response.Status, text)
	}
}
