// Command receiver receives webhooks: it verifies signatures, responds at once, handles every event once, and reads the feed for
// missed events.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// event is one event. A delivery has its id in the header webhook-id, the feed in the event.
type event struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Sequence *int            `json:"sequence"` // counts the events of one intent from 1; null for webhook.disabled
	Data     json.RawMessage `json:"data"`     // the intent as of the event, among other things
}

func main() {
	secret := os.Getenv("WEBHOOK_SECRET") // whsec_…
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil || secret == "" { // an empty secret would verify any signature
		slog.Error("set WEBHOOK_SECRET to the endpoint's secret", "err", err)
		os.Exit(1)
	}
	r := &receiver{webhook: webhook, seen: map[string]bool{}, last: map[string]int{}, gap: make(chan struct{}, 1)}
	go r.followFeed(context.Background())
	server := &http.Server{Addr: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:9000"), Handler: r, ReadTimeout: 10 * time.Second}
	slog.Error("the receiver has ended", "err", server.ListenAndServe())
	os.Exit(1)
}

type receiver struct {
	webhook *standardwebhooks.Webhook
	gap     chan struct{} // an event is missing: read the feed now

	// In your service, tables of its database: seen with the event's id as primary key, last with the intent's id, and the cursor.
	mu     sync.Mutex
	seen   map[string]bool
	last   map[string]int
	cursor string
}

// ServeHTTP receives one delivery. A response other than 2xx, or none within 15 seconds, leads to a retry.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 64<<10))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	// The signature covers the raw bytes, so verify before decoding. Verify rejects timestamps that are more than 5 minutes off.
	if err := r.webhook.Verify(body, request.Header); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	received := event{ID: request.Header.Get(standardwebhooks.HeaderWebhookID)}
	if err := json.Unmarshal(body, &received); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.take(received)
	w.WriteHeader(http.StatusNoContent)
}

// take handles an event unless it was handled before: every event may arrive more than once, by webhook and in the feed. In your
// service it stores the event in one transaction with seen and last, and a job does the slow work, so that the response does not
// wait for it.
func (r *receiver) take(e event) {
	var subject struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(e.Data, &subject) // webhook.test may have none
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[e.ID] {
		return
	}
	r.seen[e.ID] = true
	if e.Sequence == nil {
		fmt.Println("handled", e.ID, e.Type)
		return
	}
	last := r.last[subject.ID]
	if *e.Sequence > last+1 { // the events between arrive later, or only in the feed
		select {
		case r.gap <- struct{}{}:
		default:
		}
	}
	if *e.Sequence < last { // deliveries are unordered: do not overwrite newer state
		fmt.Println("handled", e.ID, e.Type, "late")
		return
	}
	r.last[subject.ID] = *e.Sequence
	fmt.Println("handled", e.ID, e.Type)
}

// followFeed reads the feed when the receiver starts, when an event is missing, and once a minute.
func (r *receiver) followFeed(ctx context.Context) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		if err := r.readFeed(ctx); err != nil {
			slog.Warn("the feed cannot be read", "err", err)
		}
		select {
		case <-r.gap:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// readFeed reads all events after the cursor, which it advances only after they were handled.
func (r *receiver) readFeed(ctx context.Context) error {
	for {
		page, next, err := readPage(ctx, r.cursor)
		if errors.Is(err, errCursorExpired) && r.cursor != "" { // expired events show in GET /v2/transfers only
			r.cursor = ""
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range page {
			r.take(e)
		}
		r.cursor = next
		if len(page) == 0 {
			return nil
		}
	}
}

var errCursorExpired = errors.New("the cursor is older than the events that are kept")

func readPage(ctx context.Context, after string) (page []event, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	query := url.Values{"limit": {"1000"}}
	if after != "" {
		query.Set("after", after)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv("API_URL")+"/v2/events?"+query.Encode(), nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("x-api-key", os.Getenv("API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusGone:
		return nil, "", errCursorExpired
	default:
		return nil, "", fmt.Errorf("read %s: %s", request.URL, response.Status)
	}
	var answer struct {
		Events []event `json:"events"`
		Next   string  `json:"next"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, "", fmt.Errorf("read the feed: %w", err)
	}
	return answer.Events, answer.Next, nil
}
