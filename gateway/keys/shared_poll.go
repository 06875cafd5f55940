package keys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errFilterIncomplete means that the filter may lack keys that exist.
var errFilterIncomplete = errors.New("the filter of existing keys is being reloaded")

// sharedPolls lets concurrent requests wait for the same next poll of the feed: at most one poll runs and one is pending.
type sharedPolls struct {
	mu sync.Mutex
	// next is the poll that has not started, nil while no request waits.
	next *sharedPoll
	// cancelPoll cancels the long poll that runs, nil if none runs.
	cancelPoll context.CancelFunc
	// waiting is how many requests wait.
	waiting atomic.Int64
}

// sharedPoll is a poll for all requests that arrived before it started.
type sharedPoll struct {
	done chan struct{}
	once sync.Once
	err  error
	// timer ends the wait at the timeout.
	timer *time.Timer
}

// request returns the next poll and starts it at once. Its requests wait at most for the timeout.
func (r *sharedPolls) request(timeout time.Duration) *sharedPoll {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		next := &sharedPoll{done: make(chan struct{})}
		next.timer = time.AfterFunc(timeout, func() { next.resolve(ErrUnavailable) })
		r.next = next
		if r.cancelPoll != nil {
			r.cancelPoll()
			r.cancelPoll = nil
		}
	}
	return r.next
}

// begin returns the poll that requests wait for. If none wait it returns nil, and a request that arrives later calls cancelPoll.
func (r *sharedPolls) begin(cancelPoll context.CancelFunc) *sharedPoll {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next, r.cancelPoll = nil, nil
	if next == nil {
		r.cancelPoll = cancelPoll
	}
	return next
}

// finish releases the requests that wait for the poll.
func (r *sharedPoll) finish(err error, filterComplete bool) {
	r.timer.Stop()
	if err == nil && !filterComplete {
		err = errFilterIncomplete
	}
	r.resolve(err)
}

func (r *sharedPoll) resolve(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.done)
	})
}

// maxSharedPolls is how many failed polls a request waits for.
const maxSharedPolls = 2

// awaitPoll waits for a poll of the feed that starts after the call. If it returns nil, the filter holds every key that existed
// at the call: a key whose creation was confirmed is in the response to every later poll.
func (v *Verifier) awaitPoll() error {
	for attempt := 1; ; attempt++ {
		r := v.polls.request(v.lookUpTimeout)
		v.polls.waiting.Add(1)
		<-r.done
		v.polls.waiting.Add(-1)
		if r.err == nil || errors.Is(r.err, errFilterIncomplete) || attempt == maxSharedPolls {
			return r.err
		}
	}
}
