package keys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errFilterIncomplete says that keys may exist that the filter lacks.
var errFilterIncomplete = errors.New("the filter of existing keys is being loaded again")

// readings lets requests share the next reading of the feed: one is under way and one is awaited at most, however many
// requests wait.
type readings struct {
	mu sync.Mutex
	// next is the reading that has not begun, nil while nobody waits for it.
	next *reading
	// interrupt ends the long poll under way, nil where there is none.
	interrupt context.CancelFunc
	// waiting counts the requests that wait.
	waiting atomic.Int64
}

// reading is one for every request that came before it began.
type reading struct {
	done chan struct{}
	once sync.Once
	err  error
	// late ends the wait for a reading that takes too long.
	late *time.Timer
}

// await gives the next reading, and sees to it that it begins at once. Its requests wait for patience at most.
func (r *readings) await(patience time.Duration) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		next := &reading{done: make(chan struct{})}
		next.late = time.AfterFunc(patience, func() { next.settle(ErrUnavailable) })
		r.next = next
		if r.interrupt != nil {
			r.interrupt()
			r.interrupt = nil
		}
	}
	return r.next
}

// begin gives the reading that requests wait for, nil for none. Without one, interrupt ends the poll when one comes.
func (r *readings) begin(interrupt context.CancelFunc) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.next
	r.next, r.interrupt = nil, nil
	if waiting == nil {
		r.interrupt = interrupt
	}
	return waiting
}

// finish releases the requests that wait.
func (r *reading) finish(err error, filterComplete bool) {
	r.late.Stop()
	if err == nil && !filterComplete {
		err = errFilterIncomplete
	}
	r.settle(err)
}

func (r *reading) settle(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.done)
	})
}

// readingAttempts is how many readings a request waits for while they fail.
const readingAttempts = 2

// awaitReading waits for a reading of the feed that begins after the call. After nil, the filter holds every key that
// existed at the call: a key whose creation was answered is visible to every reading that begins later.
func (v *Verifier) awaitReading() error {
	for attempt := 1; ; attempt++ {
		r := v.readings.await(v.lookUpTimeout)
		v.readings.waiting.Add(1)
		<-r.done
		v.readings.waiting.Add(-1)
		if r.err == nil || errors.Is(r.err, errFilterIncomplete) || attempt == readingAttempts {
			return r.err
		}
	}
}
