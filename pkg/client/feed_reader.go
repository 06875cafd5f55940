package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// feedReader follows the feed of events for all waits of a client together, so that they need one request at a time whatever their number. It
// runs while a wait has started it and has not left, and is safe for concurrent use.
type feedReader struct {
	c *Client

	mu    sync.Mutex
	waits map[*waiter]bool
	// stop ends the reader that runs, nil for none; done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}
	live bool
}

// waiter is a wait for the intent of an id or order id.
type waiter struct {
	id   string
	wake context.CancelFunc
}

const (
	// firstFeedPause and maxFeedPause are between two tries after the feed has failed, without a Retry-After.
	firstFeedPause = time.Second
	maxFeedPause   = 30 * time.Second
)

// join adds a wait for an intent.
func (f *feedReader) join(id string) *waiter {
	w := &waiter{id: strings.ToLower(id), wake: func() {}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits[w] = true
	return w
}

// leave removes a wait. The last one ends the reader and waits for that.
func (f *feedReader) leave(w *waiter) {
	f.mu.Lock()
	delete(f.waits, w)
	stop, done := f.stop, f.done
	if stop == nil || len(f.waits) > 0 {
		f.mu.Unlock()
		return
	}
	f.stop, f.live = nil, false
	f.mu.Unlock()
	stop()
	<-done
}

// woken returns a context that ends with ctx, and when the intent of w may have changed from now on.
func (f *feedReader) woken(ctx context.Context, w *waiter) (context.Context, context.CancelFunc) {
	woken, wake := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	w.wake = wake
	return woken, wake
}

// start starts the reader unless it runs, and reports whether it has the feed: until then, and while the feed fails, a wait looks by itself. A client
// token does not read the feed.
func (f *feedReader) start(ctx context.Context) (live bool) {
	if f.c.hasToken() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the wait that starts it
		f.done = make(chan struct{})
		go f.run(ctx, f.done)
	}
	return f.live
}

// run reads the feed until ctx ends, or until it fails in a way that does not pass.
func (f *feedReader) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	cursor, pause := "", firstFeedPause
	for ctx.Err() == nil {
		query := EventQuery{After: cursor, Types: []string{"transfer.*"}, Wait: longPoll}
		if cursor == "" {
			query.After, query.Wait = Now, 0
		}
		page, err := f.c.Events.List(ctx, query)
		failure, _ := errors.AsType[*Error](err)
		switch {
		case err == nil && page.Next != "":
			f.tell(ctx, page.Events, cursor == "")
			cursor, pause = page.Next, firstFeedPause
		case errors.Is(err, CodeCursorExpired) && cursor != "":
			cursor = ""
		default:
			f.lose(ctx)
			cursor = ""
			if failure == nil || !failure.passes() || ctx.Err() != nil || f.c.sleep(ctx, max(pause, failure.RetryAfter)) != nil {
				return
			}
			pause = min(2*pause, maxFeedPause)
		}
	}
}

// tell wakes the waits for the intents of the events, or all of them where events may have been missed.
func (f *feedReader) tell(ctx context.Context, events []Event, all bool) {
	changed := map[string]bool{}
	for _, e := range events {
		if e.Transfer != nil {
			changed[e.Transfer.ID], changed[e.Transfer.OrderID] = true, true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // another reader has begun
		return
	}
	f.live = true
	for w := range f.waits {
		if all || changed[w.id] {
			w.wake()
		}
	}
}

// lose has all waits look by themselves.
func (f *feedReader) lose(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || !f.live {
		return
	}
	f.live = false
	for w := range f.waits {
		w.wake()
	}
}
