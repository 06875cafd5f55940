package gateways

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/identity"
	"intents.internal/core/postgres"
	"intents.internal/core/web/route"
)

const (
	// feedInterval is the minimum time between the starts of two reads of the feed of changed keys, urgentInterval if a gateway
	// needs one at once because requests wait for it.
	feedInterval   = 100 * time.Millisecond
	urgentInterval = 20 * time.Millisecond
	// previousTimeout is how long a read waits for the previous one, whose connection may be dead.
	previousTimeout = time.Second
)

// keyFeed reads the changed keys for all gateways that wait. For any number of gateways it queries the database at most ten times
// a second, fifty times while gateways get unknown keys, and not at all while none waits. It is safe for concurrent use.
type keyFeed struct {
	store    *identity.Store
	now      func() time.Time
	readings prometheus.Counter

	mu sync.Mutex
	// next is the read that has not started, nil for none.
	next *feedRead
	// last is the previous read, and startedAt when it started.
	last      *feedRead
	startedAt time.Time
}

// feedRead is one read of the feed for all callers that joined before its start.
type feedRead struct {
	// waiting counts the waiting callers by cursor.
	waiting map[string]int
	// urgent is closed if the read must start at once; isUrgent is set then.
	urgent   chan struct{}
	isUrgent bool
	// done is closed once the results below are set.
	done       chan struct{}
	changes    map[string]identity.KeyChanges
	nextCursor string
	err        error
}

func newKeyFeed(store *identity.Store, now func() time.Time, registry prometheus.Registerer) *keyFeed {
	readings := promauto.With(registry).NewCounter(prometheus.CounterOpts{
		Name: "intents_core_key_feed_readings_total",
		Help: "Reads of the database for gateways that poll for changed keys: at most ten a second, however many gateways poll.",
	})
	done := make(chan struct{})
	close(done)
	return &keyFeed{store: store, now: now, readings: readings, last: &feedRead{done: done}}
}

// after returns the keys that have changed since the cursor, and the next cursor, as soon as there is a change or after the wait.
// It always reads at least once after the call. It returns ErrCursorExpired for an invalid cursor.
func (f *keyFeed) after(ctx context.Context, cursor string, wait time.Duration) (hashes []string, next string, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	next = cursor
	for read := false; ; read = true {
		timeout := timer.C
		if !read {
			timeout = nil
		}
		r := f.join(cursor, wait == 0)
		select {
		case <-r.done:
		case <-timeout:
			f.leave(r, cursor)
			return nil, next, nil
		case <-ctx.Done():
			f.leave(r, cursor)
			return nil, "", ctx.Err()
		}
		switch changes := r.changes[cursor]; {
		case r.err != nil:
			return nil, "", r.err
		case changes.Expired:
			return nil, "", postgres.ErrCursorExpired
		case len(changes.Hashes) > 0 || cursor == "" || wait == 0:
			return changes.Hashes, r.nextCursor, nil
		}
		cursor, next = r.nextCursor, r.nextCursor // no key changed up to nextCursor
	}
}

// join adds a caller to the next read, which starts at once if the caller is urgent.
func (f *keyFeed) join(cursor string, urgent bool) *feedRead {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &feedRead{waiting: map[string]int{}, urgent: make(chan struct{}), done: make(chan struct{})}
		go f.read(f.next, f.last, f.startedAt)
	}
	if urgent && !f.next.isUrgent {
		f.next.isUrgent = true
		close(f.next.urgent)
	}
	f.next.waiting[cursor]++
	return f.next
}

// leave removes a caller from a read.
func (f *keyFeed) leave(r *feedRead, cursor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.waiting[cursor]--; r.waiting[cursor] == 0 {
		delete(r.waiting, cursor)
	}
}

// read queries the database once feedInterval or urgentInterval has passed since the start of the previous read and that read has
// ended.
func (f *keyFeed) read(r, last *feedRead, startedAt time.Time) {
	defer close(r.done)
	select {
	case <-time.After(time.Until(startedAt.Add(feedInterval))):
	case <-r.urgent:
		<-time.After(time.Until(startedAt.Add(urgentInterval)))
	}
	select {
	case <-last.done:
	case <-time.After(previousTimeout):
	}
	cursors := f.start(r)
	if len(cursors) == 0 {
		return // all callers have left
	}
	f.readings.Inc()
	ctx, cancel := context.WithTimeout(context.Background(), route.Timeout)
	defer cancel()
	r.changes, r.nextCursor, r.err = f.store.KeyChanges(ctx, cursors, f.now())
}

// start returns the cursors of the callers; later callers join the next read.
func (f *keyFeed) start(r *feedRead) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.last, f.startedAt = nil, r, time.Now()
	return slices.Collect(maps.Keys(r.waiting))
}
