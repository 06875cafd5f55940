package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// feedStandIn stands in for GET /v2/events; a cursor is the number of events before it.
type feedStandIn struct {
	mu     sync.Mutex
	events []json.RawMessage
	keys   map[string]bool
	// expired has the next cursor refused.
	expired bool
	// ends counts the empty pages: readers that have read to the end.
	ends int
}

// readToEnd counts how often the feed was read to its end.
func (f *feedStandIn) readToEnd() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends
}

func (f *feedStandIn) start(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}

func (f *feedStandIn) add(id, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, json.RawMessage(strings.Replace(body, "{", fmt.Sprintf("{%q:%q,", "id", id), 1)))
}

func (f *feedStandIn) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = true
}

func (f *feedStandIn) usedKeys() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.keys)
}

func (f *feedStandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[string]bool{}
	}
	f.keys[r.Header.Get("X-Api-Key")] = true
	after := r.URL.Query().Get("after")
	position, err := strconv.Atoi(after)
	switch {
	case r.Method != http.MethodGet, r.URL.Path != "/v2/events", after != "" && (err != nil || position > len(f.events)):
		w.WriteHeader(http.StatusBadRequest)
	case after != "" && f.expired:
		f.expired = false
		w.WriteHeader(http.StatusGone)
	default:
		page := f.events[position:min(position+2, len(f.events))]
		if len(page) == 0 {
			f.ends++
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"events": append([]json.RawMessage{}, page...), "next": strconv.Itoa(position + len(page))})
	}
}
