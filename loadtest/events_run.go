package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// eventTimes are the latencies of a run in milliseconds from an event's timestamp: until a long poll returned it, and until its
// first delivery attempt arrived.
type eventTimes struct {
	read, delivered []float64
	posts           constantResult
	// rest is the time from the last POST to the last event.
	rest time.Duration
}

func (t eventTimes) String() string {
	return fmt.Sprintf("read p99 %.0f ms, first attempt p99 %.0f ms, POST p99 %.0f ms", quantile(t.read, 0.99), quantile(t.delivered, 0.99), milliseconds(t.posts.P99))
}

// arrived is an event as readers and receivers decode it.
type arrived struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		ID string `json:"id"`
	} `json:"data"`
}

func (a arrived) age(at time.Time) float64 { return milliseconds(at.Sub(a.Timestamp)) }

// receiver is the server of all endpoints. Endpoint 0 never answers while dead is set.
type receiver struct {
	url    string
	server *http.Server
	dead   atomic.Bool

	mu sync.Mutex
	// ages has the ages of the first attempts, by event.
	ages map[string]float64
}

func startReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is open until the program ends
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String(), ages: map[string]float64{}}
	r.server = &http.Server{Handler: http.HandlerFunc(r.receive), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // returns after close
	return r, nil
}

func (r *receiver) close() error { return r.server.Close() }

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(request.Body)
	var event arrived
	if err != nil || json.Unmarshal(body, &event) != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	if request.URL.Path == "/0" && r.dead.Load() {
		<-request.Context().Done()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.ages[event.Data.ID]; !again {
		r.ages[event.Data.ID] = event.age(now)
	}
	w.WriteHeader(http.StatusNoContent)
}

// take returns and removes the ages of the events that have arrived.
func (r *receiver) take() (ages []float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, age := range r.ages {
		ages = append(ages, age)
	}
	clear(r.ages)
	return ages
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ages)
}

// feedReader reads the feed of one account by long polls.
type feedReader struct {
	url, key string
	client   *http.Client

	mu   sync.Mutex
	ages []float64
	err  error
}

// run reads events from now on until ctx ends; it calls ready once the reader has its cursor.
func (r *feedReader) run(ctx context.Context, ready func()) {
	cursor := "now"
	for ctx.Err() == nil {
		page, err := r.read(ctx, cursor)
		now := time.Now()
		if cursor == "now" {
			ready()
		}
		if err != nil {
			if ctx.Err() == nil {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
			}
			return
		}
		cursor = page.Next
		r.mu.Lock()
		for _, event := range page.Events {
			r.ages = append(r.ages, event.age(now))
		}
		r.mu.Unlock()
	}
}

type feedPage struct {
	Events []arrived `json:"events"`
	Next   string    `json:"next"`
}

func (r *feedReader) read(ctx context.Context, cursor string) (page feedPage, err error) {
	wait := "&wait=25"
	if cursor == "now" {
		wait = ""
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/v2/events?limit=1000&after="+url.QueryEscape(cursor)+wait, nil)
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
		text, _ := io.ReadAll(response.Body)
		return page, fmt.Errorf("read the feed: %s %s", response.Status, text)
	}
	return page, json.NewDecoder(response.Body).Decode(&page)
}

// run makes writers create intents at a rate while the feed of readers is read, until every event has arrived.
func (b *eventsBench) run(ctx context.Context, rate int, writers, readers []benchAccount) (t eventTimes, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.duration+2*time.Minute)
	defer cancel()
	b.receiver.take()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(readers)}}
	defer client.CloseIdleConnections()
	all := make([]*feedReader, len(readers))
	var running, ready sync.WaitGroup
	reading, stop := context.WithCancel(ctx)
	defer func() { stop(); running.Wait() }()
	for n, account := range readers {
		all[n] = &feedReader{url: b.stack.Env().GatewayURL, key: account.keys[0], client: client}
		ready.Add(1)
		running.Go(func() { all[n].run(reading, ready.Done) })
	}
	ready.Wait()
	if t.posts, err = (openLoop{connections: 64, rate: float64(rate), duration: b.duration}).run(ctx, b.address(), post(b.address(), writers)); err != nil {
		return t, err
	}
	began := time.Now()
	posted := int(float64(rate) * b.duration.Seconds())
	delivered, read := expectedArrivals(posted, writers, readers, b.receiver.dead.Load() && writers[0].keys[0] == b.accounts[0].keys[0])
	for b.receiver.count() < delivered || countRead(all) < read {
		if err := readErrors(all); err != nil {
			return t, err
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("%d of %d events were delivered and %d of %d read: %w", b.receiver.count(), delivered, countRead(all), read, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.rest = time.Since(began)
	stop()
	running.Wait()
	t.delivered = b.receiver.take()
	for _, r := range all {
		t.read = append(t.read, r.ages...)
	}
	return t, nil
}

// expectedArrivals returns how many of the POSTs' events are delivered, except to a dead endpoint of the first writer, and how
// many are read.
func expectedArrivals(posted int, writers, readers []benchAccount, firstDead bool) (delivered, read int) {
	isReader := make(map[string]bool, len(readers))
	for _, r := range readers {
		isReader[r.keys[0]] = true
	}
	for n := range posted {
		if !firstDead || n%len(writers) != 0 {
			delivered++
		}
		if isReader[writers[n%len(writers)].keys[0]] {
			read++
		}
	}
	return delivered, read
}

func countRead(all []*feedReader) (n int) {
	for _, r := range all {
		r.mu.Lock()
		n += len(r.ages)
		r.mu.Unlock()
	}
	return n
}

func readErrors(all []*feedReader) error {
	var errs []error
	for _, r := range all {
		r.mu.Lock()
		errs = append(errs, r.err)
		r.mu.Unlock()
	}
	return errors.Join(errs...)
}
