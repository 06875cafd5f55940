package system

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Receiver is an endpoint of webhooks that keeps all deliveries as they came.
type Receiver struct {
	// URL is its address; every path of it receives.
	URL string
	t   *testing.T

	mu         sync.Mutex
	deliveries map[string][]Delivery
}

// Delivery is one signed request, and when it came.
type Delivery struct {
	At     time.Time
	Header http.Header
	Body   []byte
}

// StartReceiver starts one until the test ends.
func StartReceiver(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{t: t, deliveries: map[string][]Delivery{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// ServeHTTP keeps a delivery and answers 204. It fails the test for a request without a signature.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest) // core was killed while it sent
		return
	}
	if !strings.HasPrefix(request.Header.Get("Webhook-Signature"), "v1,") {
		r.t.Errorf("an unsigned request: %v", request.Header)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := request.Header.Get("Webhook-Id")
	r.deliveries[id] = append(r.deliveries[id], Delivery{now, request.Header, body})
	w.WriteHeader(http.StatusNoContent)
}

// Deliveries are those of the event with this id so far.
func (r *Receiver) Deliveries(id string) []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries[id])
}

// All are the deliveries so far, by the id of the event.
func (r *Receiver) All() map[string][]Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]Delivery{}
	for id, deliveries := range r.deliveries {
		all[id] = slices.Clone(deliveries)
	}
	return all
}
