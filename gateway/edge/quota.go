package edge

import "sync"

// quota counts the units in use, in total and by owner, and bounds both.
type quota[Owner comparable] struct {
	// max is the bound of the total, maxPerOwner of one owner; 0 for none.
	max, maxPerOwner int

	mu      sync.Mutex
	used    int
	byOwner map[Owner]int
}

func newQuota[Owner comparable](limit, perOwner int) *quota[Owner] {
	return &quota[Owner]{max: limit, maxPerOwner: perOwner, byOwner: map[Owner]int{}}
}

// quotaResult is the result of acquire.
type quotaResult int

const (
	granted quotaResult = iota
	// atMax means that the total is at its bound, ownerAtMax that the owner is.
	atMax
	ownerAtMax
)

// acquire takes one unit for the owner, within the bounds.
func (q *quota[Owner]) acquire(o Owner) quotaResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.maxPerOwner > 0 && q.byOwner[o] >= q.maxPerOwner:
		return ownerAtMax
	case q.max > 0 && q.used >= q.max:
		return atMax
	}
	q.used++
	q.byOwner[o]++
	return granted
}

// release returns one unit of the owner.
func (q *quota[Owner]) release(o Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	if q.byOwner[o]--; q.byOwner[o] == 0 {
		delete(q.byOwner, o) // a map of all owners would grow without bound
	}
}

// isOwnerAtMax reports whether the owner has reached its bound.
func (q *quota[Owner]) isOwnerAtMax(o Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.maxPerOwner > 0 && q.byOwner[o] >= q.maxPerOwner
}

func (q *quota[Owner]) limit() int { return q.max }

func (q *quota[Owner]) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}
