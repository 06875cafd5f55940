package api

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/postgres"
)

const (
	// feedPause is the least time between the beginnings of two readings of the feed of changed keys, promptPause where a
	// gateway asks for one at once, since requests wait for it.
	feedPause   = 100 * time.Millisecond
	promptPause = 20 * time.Millisecond
	// feedPatience is how long a reading waits for the one before it, whose connection may be dead.
	feedPatience = time.Second
)

// keyFeed reads which keys have changed for all gateways that wait to hear of it, so that each core asks the database ten times a
// second at most, however many gateways there are, and fifty times while unknown keys are presented to them, however many.
// Where none waits it reads nothing. It is safe for concurrent use.
type keyFeed struct {
	store    *postgres.Store
	readings prometheus.Counter

	mu sync.Mutex
	// coming is the reading that has not begun, nil for none.
	coming *feedReading
	// newest is the one before, and begun when it did.
	newest *feedReading
	begun  time.Time
}

// feedReading is one reading of the feed for everyone who came before it began.
type feedReading struct {
	// waiting counts who waits, by their cursors.
	waiting map[string]int
	// prompt is closed when the reading is to begin at once, hurried says that it is.
	prompt  chan struct{}
	hurried bool
	// done is closed when what follows it is there.
	done  chan struct{}
	since map[string]postgres.KeyChanges
	next  string
	err   error
}

func newKeyFeed(store *postgres.Store, readings prometheus.Counter) *keyFeed {
	over := make(chan struct{})
	close(over)
	return &keyFeed{store: store, readings: readings, newest: &feedReading{done: over}}
}

// after tells what has changed since the cursor, and the cursor to ask with next, as soon as there is a change or when the wait is
// over. What it tells was read after the call, whatever the wait. It returns ErrCursorExpired for a cursor of no use.
func (f *keyFeed) after(ctx context.Context, cursor string, wait time.Duration) (hashes []string, next string, err error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	next = cursor
	for read := false; ; read = true {
		patience := over.C
		if !read {
			patience = nil
		}
		r := f.join(cursor, wait == 0)
		select {
		case <-r.done:
		case <-patience:
			f.leave(r, cursor)
			return nil, next, nil
		case <-ctx.Done():
			f.leave(r, cursor)
			return nil, "", ctx.Err()
		}
		switch changes := r.since[cursor]; {
		case r.err != nil:
			return nil, "", r.err
		case changes.Expired:
			return nil, "", postgres.ErrCursorExpired
		case len(changes.Hashes) > 0 || cursor == "" || wait == 0:
			return changes.Hashes, r.next, nil
		}
		cursor, next = r.next, r.next // nothing has changed up to there
	}
}

// join waits for the reading that comes, and sees to it that one does, at once if it is to be prompt.
func (f *keyFeed) join(cursor string, prompt bool) *feedReading {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.coming == nil {
		f.coming = &feedReading{waiting: map[string]int{}, prompt: make(chan struct{}), done: make(chan struct{})}
		go f.read(f.coming, f.newest, f.begun)
	}
	if prompt && !f.coming.hurried {
		f.coming.hurried = true
		close(f.coming.prompt)
	}
	f.coming.waiting[cursor]++
	return f.coming
}

// leave waits no longer.
func (f *keyFeed) leave(r *feedReading, cursor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.waiting[cursor]--; r.waiting[cursor] == 0 {
		delete(r.waiting, cursor)
	}
}

// read carries a reading out after the pause since the one before it began, and when that is over.
func (f *keyFeed) read(r, before *feedReading, begun time.Time) {
	defer close(r.done)
	select {
	case <-time.After(time.Until(begun.Add(feedPause))):
	case <-r.prompt:
		<-time.After(time.Until(begun.Add(promptPause)))
	}
	select {
	case <-before.done:
	case <-time.After(feedPatience):
	}
	cursors := f.begin(r)
	if len(cursors) == 0 {
		return // all of them have left
	}
	f.readings.Inc()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	r.since, r.next, r.err = f.store.KeyChanges(ctx, cursors, f.store.Now())
}

// begin gives the cursors of those who wait. Who comes from now on waits for the next reading.
func (f *keyFeed) begin(r *feedReading) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.coming, f.newest, f.begun = nil, r, time.Now()
	return slices.Collect(maps.Keys(r.waiting))
}
