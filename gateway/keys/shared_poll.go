package keys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errFilterIncomplete says that the filter may lack keys that exist.
var errFilterIncomplete = errors.New("the filter of existing keys is being reloaded")

// sharedPolls lets requests wait for the next poll of the feed together: one poll runs and one is waited for at most.
type sharedPolls struct {
	mu sync.Mutex
	// next is the poll that has not begun, nil while no request waits.
	next *sharedPoll
	// cancelPoll ends the long poll that runs, nil where none does.
	cancelPoll context.CancelFunc
	// waiting is how many requests wait.
	waiting atomic.Int64
}

// sharedPoll is a poll for all requests that came before it began.
type sharedPoll struct {
	done chan struct{}
	once sync.Once
	err  error
	// timer ends the wait at the timeout.
	timer *time.Timer
}

// request returns the next poll and has it begin at once. Its requests wait for at most the timeout.
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

// begin returns the poll that requests wait for. It returns nil where none wait; cancelPoll is called when one comes.
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

// awaitPoll waits for a poll of the feed that begins after the call. After nil, the filter holds every key that existed at
// the call: a key whose creation was answered is in the answer to every poll that begins later.
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
