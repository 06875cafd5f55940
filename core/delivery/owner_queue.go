package delivery

import (
	"sync"

	"intents.internal/core/event"
)

// ownerQueue is the set of owners with new events.
type ownerQueue struct {
	wake chan struct{}

	mu     sync.Mutex
	owners map[event.Owner]bool
}

func (q *ownerQueue) add(owners []event.Owner) {
	q.mu.Lock()
	for _, o := range owners {
		q.owners[o] = true
	}
	q.mu.Unlock()
	signal(q.wake)
}

// take removes at most batchSize owners.
func (q *ownerQueue) take() (owners []event.Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for o := range q.owners {
		if len(owners) == batchSize {
			break
		}
		owners = append(owners, o)
		delete(q.owners, o)
	}
	return owners
}

// signal wakes the reader of a channel of capacity one.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
