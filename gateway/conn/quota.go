package conn

import "sync"

// Quota counts the units in use, in total and by owner, and bounds both.
type Quota[Owner comparable] struct {
	// max is the bound of the total, maxPerOwner of one owner; 0 for none.
	max, maxPerOwner int

	mu      sync.Mutex
	used    int
	byOwner map[Owner]int
}

// NewQuota creates a quota of this many units in total and for each owner; 0 for no bound.
func NewQuota[Owner comparable](limit, perOwner int) *Quota[Owner] {
	return &Quota[Owner]{max: limit, maxPerOwner: perOwner, byOwner: map[Owner]int{}}
}

// QuotaResult is the result of Acquire.
type QuotaResult int

// The results of Acquire.
const (
	// Granted means that the owner has one unit more.
	Granted QuotaResult = iota
	// AtMax means that the total is at its bound, OwnerAtMax that the owner is.
	AtMax
	OwnerAtMax
)

// Acquire takes one unit for the owner, within the bounds.
func (q *Quota[Owner]) Acquire(o Owner) QuotaResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.maxPerOwner > 0 && q.byOwner[o] >= q.maxPerOwner:
		return OwnerAtMax
	case q.max > 0 && q.used >= q.max:
		return AtMax
	}
	q.used++
	q.byOwner[o]++
	return Granted
}

// Release returns one unit of the owner.
func (q *Quota[Owner]) Release(o Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	if q.byOwner[o]--; q.byOwner[o] == 0 {
		delete(q.byOwner, o) // a map of all owners would grow without bound
	}
}

// IsOwnerAtMax reports whether the owner has reached its bound.
func (q *Quota[Owner]) IsOwnerAtMax(o Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.maxPerOwner > 0 && q.byOwner[o] >= q.maxPerOwner
}

// Max is the bound of the total, 0 for none.
func (q *Quota[Owner]) Max() int { return q.max }

// Used is the number of units in use.
func (q *Quota[Owner]) Used() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}
