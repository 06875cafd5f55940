package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
)

// feedEvent is what the tests compare of an event of GET /v2/events.
type feedEvent struct {
	ID, Type string
	Sequence int
	Data     struct{ ID, Status string }
}

// feedPage is an answer of GET /v2/events.
type feedPage struct {
	Events []feedEvent
	Next   string
}

// feedReader reads the feed of the keys' account from its beginning, page by page, and goes on from its cursor after every failure.
type feedReader struct {
	t       *testing.T
	gateway string
	key     string
	limit   int
	client  *http.Client
	running sync.WaitGroup
	cancel  context.CancelFunc

	mu       sync.Mutex
	events   []feedEvent
	cursor   string
	failures int
	// idleSince is when the reader reached the end of the feed, zero while there may be more.
	idleSince time.Time
}

// startFeedReaders starts a reader for each of these page sizes, with a key of its own, as a key may have two long polls.
func startFeedReaders(t *testing.T, g *gateway, keys []string, limits ...int) []*feedReader {
	t.Helper()
	readers := make([]*feedReader, len(limits))
	for n, limit := range limits {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		r := &feedReader{t: t, gateway: g.url, key: keys[n], limit: limit, client: &http.Client{Timeout: 40 * time.Second}, cancel: cancel}
		r.running.Go(func() { r.run(ctx) })
		t.Cleanup(r.stop)
		readers[n] = r
	}
	return readers
}

func (r *feedReader) stop() {
	r.cancel()
	r.running.Wait()
	r.client.CloseIdleConnections()
}

func (r *feedReader) run(ctx context.Context) {
	for ctx.Err() == nil {
		asked := time.Now()
		page, err := r.read(ctx)
		r.mu.Lock()
		switch {
		case err != nil:
			r.failures++
		default:
			r.events, r.cursor = append(r.events, page.Events...), page.Next
			if r.idleSince = (time.Time{}); len(page.Events) == 0 {
				r.idleSince = asked
			}
		}
		r.mu.Unlock()
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// read asks for the next page and waits for a second where there is none.
func (r *feedReader) read(ctx context.Context) (page feedPage, err error) {
	query := url.Values{"limit": {fmt.Sprint(r.limit)}, "wait": {"1"}}
	if r.cursor != "" {
		query.Set("after", r.cursor)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.gateway+"/v2/events?"+query.Encode(), nil)
	if err != nil {
		return page, err
	}
	request.Header.Set("X-Api-Key", r.key)
	response, err := r.client.Do(request)
	if err != nil {
		return page, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		if response.StatusCode < http.StatusInternalServerError {
			r.t.Errorf("a reader was answered %s", response.Status)
		}
		return page, fmt.Errorf("answered %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return page, err
	}
	if page.Next == "" || len(page.Events) > r.limit {
		r.t.Errorf("a page of %d events has the cursor %q", len(page.Events), page.Next)
	}
	return page, nil
}

func (r *feedReader) soFar() []feedEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// awaitEnd waits until the reader has found nothing more after this moment.
func (r *feedReader) awaitEnd(moment time.Time) {
	r.t.Helper()
	asynctest.Completes(r.t, "a reader has read to the end", func() (read int, atEnd bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.events), r.idleSince.After(moment)
	})
}

// mustHaveReadAll stops the readers once they have read to the end. Each must have every event of the database once, all in one order,
// and those of each intent by their sequence from 1 without a gap.
func mustHaveReadAll(t *testing.T, db *database, readers []*feedReader) (events int) {
	t.Helper()
	now := time.Now()
	for _, r := range readers {
		r.awaitEnd(now)
		r.stop()
	}
	var stored int
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT count(*) FROM events WHERE account_id = $1`, db.owner).Scan(&stored)
	})
	first := readers[0].soFar()
	for n, r := range readers {
		all := r.soFar()
		if len(all) != stored {
			t.Errorf("reader %d has %d events of %d", n, len(all), stored)
		}
		if !slices.Equal(all, first) {
			t.Errorf("reader %d has another order than the first", n)
		}
		seen, last := map[string]bool{}, map[string]int{}
		for _, e := range all {
			if seen[e.ID] {
				t.Errorf("reader %d has %s twice", n, e.ID)
			}
			seen[e.ID] = true
			if e.Sequence != last[e.Data.ID]+1 {
				t.Errorf("reader %d: %s of %s has the sequence %d after %d", n, e.Type, e.Data.ID, e.Sequence, last[e.Data.ID])
			}
			last[e.Data.ID] = e.Sequence
		}
	}
	return len(first)
}
