package delivery

import (
	"slices"
	"sync"

	"github.com/google/uuid"
)

const (
	// roundFresh is how many accounts with news one round dispatches for, and roundBacklog how many of those that had more events
	// than their share: so a replay, or any number of them, holds up no account's news.
	roundFresh, roundBacklog = 50, 5
)

// accountQueue has the accounts with events to dispatch. Those with news, and those whose share of a round was not enough, wait in
// separate lines, each in the order of arrival.
type accountQueue struct {
	wake chan struct{}

	mu             sync.Mutex
	fresh, backlog []uuid.UUID
	queued         map[uuid.UUID]bool
}

func newAccountQueue() *accountQueue {
	return &accountQueue{wake: make(chan struct{}, 1), queued: map[uuid.UUID]bool{}}
}

// add queues accounts with news that do not wait yet.
func (q *accountQueue) add(accounts []uuid.UUID) {
	q.mu.Lock()
	for _, id := range accounts {
		if !q.queued[id] {
			q.queued[id] = true
			q.fresh = append(q.fresh, id)
		}
	}
	q.mu.Unlock()
	signal(q.wake)
}

// addBacklog queues accounts of the last round that have more events, also if they have news besides.
func (q *accountQueue) addBacklog(accounts []uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range accounts {
		if q.queued[id] {
			q.fresh = slices.DeleteFunc(q.fresh, func(other uuid.UUID) bool { return other == id })
		}
		q.queued[id] = true
		q.backlog = append(q.backlog, id)
	}
}

// take removes the accounts of a round; more is true if others wait.
func (q *accountQueue) take() (accounts []uuid.UUID, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh, backlog := min(roundFresh, len(q.fresh)), min(roundBacklog, len(q.backlog))
	accounts = slices.Concat(q.fresh[:fresh], q.backlog[:backlog])
	q.fresh, q.backlog = slices.Delete(q.fresh, 0, fresh), slices.Delete(q.backlog, 0, backlog)
	for _, id := range accounts {
		delete(q.queued, id)
	}
	return accounts, len(q.fresh)+len(q.backlog) > 0
}

// clear removes all accounts.
func (q *accountQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fresh, q.backlog = nil, nil
	clear(q.queued)
}

// signal wakes the reader of a channel of capacity one.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
