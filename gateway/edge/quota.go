package edge

import "sync"

// quota counts what is in use, in all and by each owner, up to two bounds.
type quota[Owner comparable] struct {
	// most is the bound in all, each that of one owner; 0 for none.
	most, each int

	mu   sync.Mutex
	used int
	by   map[Owner]int
}

func newQuota[Owner comparable](most, each int) *quota[Owner] {
	return &quota[Owner]{most: most, each: each, by: map[Owner]int{}}
}

// shortage is what is missing for one more.
type shortage int

const (
	none shortage = iota
	// inAll says that there are none left for anybody, ofOwner that this owner has its share.
	inAll
	ofOwner
)

// acquire counts one more for the owner, or says what is missing.
func (q *quota[Owner]) acquire(o Owner) shortage {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.each > 0 && q.by[o] >= q.each:
		return ofOwner
	case q.most > 0 && q.used >= q.most:
		return inAll
	}
	q.used++
	q.by[o]++
	return none
}

// release takes one of the owner's back.
func (q *quota[Owner]) release(o Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	if q.by[o]--; q.by[o] == 0 {
		delete(q.by, o) // owners come and go
	}
}

// exhausted reports whether the owner has its share.
func (q *quota[Owner]) exhausted(o Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.each > 0 && q.by[o] >= q.each
}

func (q *quota[Owner]) limit() int { return q.most }

func (q *quota[Owner]) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}
