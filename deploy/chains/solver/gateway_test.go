package solver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// gateway stands in for GET /v2/events of the public API, with bodies as it gives them.
type gateway struct {
	*httptest.Server
	// failures is how many requests fail before the others.
	failures atomic.Int64
	// expired is how many times all cursors have expired. They begin with it.
	expired atomic.Int64

	mu     sync.Mutex
	events []string
	added  chan struct{}
}

const testKey = "sk_test_0123456789"

func startGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{added: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(t, w, r) }))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) serve(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	query := r.URL.Query()
	if r.URL.Path != "/v2/events" || r.Header.Get("x-api-key") != testKey || query.Get("wait") != "25" {
		t.Errorf("asked %s with the key %q", r.URL, r.Header.Get("x-api-key"))
	}
	if g.failures.Add(-1) >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"SERVICE_UNAVAILABLE","message":"Try again."}`)
		return
	}
	cursor := fmt.Sprintf("cursor-%d-", g.expired.Load())
	given, current := strings.CutPrefix(query.Get("after"), cursor)
	if query.Has("after") && !current {
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"code":"CURSOR_EXPIRED","message":"The cursor is too old; start again without one."}`)
		return
	}
	after, _ := strconv.Atoi(given)
	g.mu.Lock()
	events, added := g.events[after:], g.added
	g.mu.Unlock()
	if len(events) == 0 {
		select {
		case <-added:
		case <-r.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
		g.mu.Lock()
		events = g.events[after:]
		g.mu.Unlock()
	}
	fmt.Fprintf(w, `{"events":[%s],"next":"%s%d"}`, strings.Join(events, ","), cursor, after+len(events))
}

// record adds the event with which an intent begins.
func (g *gateway) record(orderID common.Hash, kind string, reference *string) {
	quoted := []byte("null")
	if reference != nil {
		quoted, _ = json.Marshal(*reference)
	}
	g.add(fmt.Sprintf(`{"id":"evt_4bc1132c-c58f-5764-b82f-b9e1ad866439","type":"transfer.created","timestamp":"2026-11-21T04:50:08.256Z",`+
		`"environment":"test","sequence":1,"data":{"id":"01a1fc6f-cea0-7b16-87fe-c7933bb8a48e","type":%q,"status":"created","orderId":"0x%x",`+
		`"createdAt":"2026-11-21T04:49:08.256Z","updatedAt":"2026-11-21T04:50:08.256Z","metadata":{"chainId":"eip155:31337"},`+
		`"source":{"amount":"1000"},"destination":{"amount":"990"},"reference":%s,"from":null,"to":"created","hash":null,"failure":null}}`,
		kind, orderID, quoted))
}

func (g *gateway) add(event string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, event)
	close(g.added)
	g.added = make(chan struct{})
}
