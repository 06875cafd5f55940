package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/client"
)

// busyService limits each intent's reads at first, and tells of their ends in the feed alone, once all were read.
type busyService struct {
	mu                sync.Mutex
	count             int
	reads             map[string]int
	followers, atOnce int
	allRead           chan struct{}
	told              bool
	reading           int
}

func (s *busyService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/events" {
		s.serveFeed(w, r)
		return
	}
	id := strings.TrimPrefix(r.URL.Path, "/v2/transfers/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[id]++
	if s.reads[id] <= 4 { // more than a request has tries
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"code": "RATE_LIMITED", "message": "later"}`)
		return
	}
	if s.reads[id] == 5 {
		if s.reading++; s.reading == s.count {
			close(s.allRead)
		}
	}
	fmt.Fprintf(w, `{"id": %q, "orderId": "0x%s", "status": "submitted", "ended": %t}`, id, id, s.told)
}

func (s *busyService) serveFeed(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.followers++
	s.atOnce = max(s.atOnce, s.followers)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.followers--
	}()
	switch r.URL.Query().Get("after") {
	case client.Now:
		fmt.Fprint(w, `{"events": [], "next": "c1"}`)
	case "c1":
		select {
		case <-s.allRead:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
		s.told = true
		s.mu.Unlock()
		var events []string
		for n := range s.count {
			events = append(events, fmt.Sprintf(`{"id": "evt_%d", "type": "transfer.failed", "data": {"id": "i%d", "orderId": "0xi%d"}}`, n, n, n))
		}
		fmt.Fprintf(w, `{"events": [%s], "next": "c2"}`, strings.Join(events, ","))
	default:
		<-r.Context().Done()
	}
}

// Sixteen waits of one client are delayed by the rate limit, follow the feed with one request at a time and end by it: no time passes in which
// they could look by themselves.
func TestTransfers_WaitTogether(t *testing.T) {
	t.Parallel()
	const waits = 16
	server := &busyService{count: waits, reads: map[string]int{}, allRead: make(chan struct{})}
	service := httptest.NewServer(server)
	defer service.Close()
	api := newClient(t, service.URL)
	api.SetClock(time.Now(), 0, func(ctx context.Context, pause time.Duration) error {
		if pause == 7*time.Second {
			return ctx.Err()
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	var waiting sync.WaitGroup
	for n := range waits {
		waiting.Go(func() {
			if last, err := api.Transfers.Wait(t.Context(), fmt.Sprintf("i%d", n), client.WaitOptions{}); err != nil || !last.Ended {
				t.Errorf("wait %d: %+v, %v", n, last, err)
			}
		})
	}
	waiting.Wait()
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.atOnce != 1 {
		t.Errorf("the feed was read %d times at once", server.atOnce)
	}
	for id, reads := range server.reads {
		if reads > 8 { // four refusals, the first record, at most two more as the reader begins, the end
			t.Errorf("%s was read %d times", id, reads)
		}
	}
}

// A wait ends after its timeout although the service answers, with the intent as it was last read.
func TestTransfers_WaitTimeout(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/events" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"id": "id", "status": "created", "ended": false}`)
	}))
	defer service.Close()
	api := newClient(t, service.URL)
	api.SetClock(time.Now(), 0, func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	last, err := api.Transfers.Wait(t.Context(), "id", client.WaitOptions{Timeout: time.Second})
	if !errors.Is(err, context.DeadlineExceeded) || last == nil || last.Status != client.StatusCreated || !strings.Contains(err.Error(), "still created: the wait has taken 1s") {
		t.Errorf("%+v, %v", last, err)
	}
}
