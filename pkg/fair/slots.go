// Package fair bounds work that many owners share: so much in all, so much of each owner, and the next free slot for the owner that has
// the fewest. No owner takes it all, however much it asks for.
//
// It owns the bounds of work in flight. Bounds of a rate are token buckets (pkg/tokenbucket); an account's share of a page that SQL reads is
// the query's; long polls are counted by the list of those that an event wakes (gateway/polls).
package fair

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
)

// ErrTooManyWaiting is returned to an owner of whom too many wait for a slot.
var ErrTooManyWaiting = errors.New("too many of one owner wait for each other")

// Share is how many slots one owner may have.
type Share struct {
	most int
	// of decides by what is free; nil for most.
	of func(used, free int) bool
}

// AtMost is the share of so many slots; 0 for no bound.
func AtMost(most int) Share { return Share{most: most} }

// ShareOf is the share of an owner that may have another slot while it has used so many and so many are free. Whatever an owner may, one that has
// used fewer may too.
func ShareOf(may func(used, free int) bool) Share { return Share{of: may} }

func (s Share) allows(used, free int) bool {
	if s.of != nil {
		return s.of(used, free)
	}
	return s.most == 0 || used < s.most
}

// Slots bounds work in flight in all and by owner. A slot that becomes free goes to the waiting owner that has the fewest; among equals to the
// one that has waited longest since it came or last had its turn. It is safe for concurrent use.
type Slots[Owner comparable] struct {
	size  int
	share Share

	mu   sync.Mutex
	free int
	// used counts the slots in use by owner, without zeros: a map of all owners would grow without bound.
	used map[Owner]int
	// waiting has the lines of the owners that wait, and next the same ones as a heap whose first is the next to get a slot.
	waiting map[Owner]*line[Owner]
	next    lines[Owner]
	// turns numbers the turns of owners.
	turns uint64
}

// line is the requests of one owner in the order of their arrival, at least one.
type line[Owner comparable] struct {
	owner    Owner
	requests []*request
	// used is how many slots the owner has, and place the line's in the heap.
	used, place int
	// since is the number of the owner's last turn while it waited, or of its arrival.
	since uint64
}

// request is a request for one slot.
type request struct {
	rank int
	// granted is closed once the request has its slot.
	granted chan struct{}
}

// New returns slots of this number, 0 for no bound, of which each owner has its share.
func New[Owner comparable](size int, share Share) *Slots[Owner] {
	free := size
	if size == 0 {
		free = math.MaxInt
	}
	return &Slots[Owner]{size: size, share: share, free: free, used: map[Owner]int{}, waiting: map[Owner]*line[Owner]{}}
}

// Result is the result of TryAcquire.
type Result int

// The results of TryAcquire.
const (
	// Granted means that the owner has one slot more.
	Granted Result = iota
	// AtMax means that no slot is free, OwnerAtMax that the owner has its share.
	AtMax
	OwnerAtMax
)

// TryAcquire takes a slot if one is free for the owner, which must Release it. It takes none from those that wait: one that may have a free
// slot has it already.
func (s *Slots[Owner]) TryAcquire(owner Owner) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.check(owner)
	if result == Granted {
		s.take(owner)
	}
	return result
}

// TryAcquireSome takes up to n slots and returns how many.
func (s *Slots[Owner]) TryAcquireSome(owner Owner, n int) (taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for taken < n && s.check(owner) == Granted {
		s.take(owner)
		taken++
	}
	return taken
}

// Acquire waits for a slot, which the caller must release. It returns ErrTooManyWaiting if most others of the owner wait already, or the cause of
// the end of ctx.
func (s *Slots[Owner]) Acquire(ctx context.Context, owner Owner, most int) (release func(), err error) {
	s.mu.Lock()
	var waits *request
	switch line := s.waiting[owner]; {
	case s.check(owner) == Granted:
		s.take(owner)
	case most == 0, line != nil && len(line.requests) >= most:
		s.mu.Unlock()
		return nil, ErrTooManyWaiting
	default:
		waits = s.wait(owner, 0)
	}
	s.mu.Unlock()
	if waits != nil {
		select {
		case <-waits.granted:
		case <-ctx.Done():
			s.cancel(owner, waits)
			return nil, context.Cause(ctx)
		}
	}
	return func() { s.Release(owner) }, nil
}

// Request asks for a slot. Granted is closed once the owner has it; cancel ends the wait, or releases the slot. Of one owner's requests the one
// with the least rank is first.
func (s *Slots[Owner]) Request(owner Owner, rank int) (granted <-chan struct{}, cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.wait(owner, rank)
	s.grant()
	return r.granted, func() { s.cancel(owner, r) }
}

// Release returns one slot of an owner.
func (s *Slots[Owner]) Release(owner Owner) { s.ReleaseSome(owner, 1) }

// ReleaseSome returns n slots of an owner.
func (s *Slots[Owner]) ReleaseSome(owner Owner, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(owner, n)
}

// IsOwnerAtMax reports whether an owner has its share.
func (s *Slots[Owner]) IsOwnerAtMax(owner Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(owner) == OwnerAtMax
}

// Max is the number of slots, 0 for no bound.
func (s *Slots[Owner]) Max() int { return s.size }

// Used is the number of slots in use.
func (s *Slots[Owner]) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == 0 {
		return math.MaxInt - s.free
	}
	return s.size - s.free
}

func (s *Slots[Owner]) check(owner Owner) Result {
	switch {
	case !s.share.allows(s.used[owner], s.free):
		return OwnerAtMax
	case s.free == 0:
		return AtMax
	default:
		return Granted
	}
}

func (s *Slots[Owner]) take(owner Owner) { s.use(owner, 1) }

func (s *Slots[Owner]) put(owner Owner, n int) {
	s.use(owner, -n)
	s.grant()
}

// use counts n more slots of an owner.
func (s *Slots[Owner]) use(owner Owner, n int) {
	s.free -= n
	used := s.used[owner] + n
	if used == 0 {
		delete(s.used, owner)
	} else {
		s.used[owner] = used
	}
	if len(s.waiting) == 0 {
		return
	}
	if l := s.waiting[owner]; l != nil {
		l.used = used
		heap.Fix(&s.next, l.place)
	}
}

// wait adds a request to the line of its owner.
func (s *Slots[Owner]) wait(owner Owner, rank int) *request {
	r := &request{rank, make(chan struct{})}
	l := s.waiting[owner]
	if l == nil {
		s.turns++
		l = &line[Owner]{owner: owner, since: s.turns, used: s.used[owner]}
		s.waiting[owner] = l
		heap.Push(&s.next, l)
	}
	l.requests = append(l.requests, r)
	return r
}

// cancel ends a request, and releases its slot if it has one.
func (s *Slots[Owner]) cancel(owner Owner, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.granted:
		s.put(owner, 1)
	default:
		s.remove(owner, r)
	}
}

// remove takes a request out of the line of its owner.
func (s *Slots[Owner]) remove(owner Owner, r *request) {
	l := s.waiting[owner]
	if l.requests = slices.DeleteFunc(l.requests, func(other *request) bool { return other == r }); len(l.requests) == 0 {
		delete(s.waiting, owner)
		heap.Remove(&s.next, l.place)
	}
}

// grant gives the free slots to the requests that may have them.
func (s *Slots[Owner]) grant() {
	for len(s.next) > 0 && s.check(s.next[0].owner) == Granted {
		l := s.next[0]
		r := slices.MinFunc(l.requests, func(a, b *request) int { return cmp.Compare(a.rank, b.rank) })
		s.turns++
		l.since = s.turns
		s.remove(l.owner, r)
		s.take(l.owner)
		close(r.granted)
	}
}

// lines is a heap of lines: fewest slots first, then longest wait.
type lines[Owner comparable] []*line[Owner]

func (h lines[Owner]) Len() int { return len(h) }

func (h lines[Owner]) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].used, h[j].used), cmp.Compare(h[i].since, h[j].since)) < 0
}

func (h lines[Owner]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *lines[Owner]) Push(x any) {
	l, _ := x.(*line[Owner])
	l.place = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *lines[Owner]) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
