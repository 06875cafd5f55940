package webhooks

import (
	"sync"

	"github.com/google/uuid"
)

// shareDivisor is the part of the shared free slots that an account may have in use: a quarter.
const shareDivisor = 4

// slots bounds the requests in flight, fairly to accounts. Half of the slots are shared: an account gets another of them while it
// has fewer than a quarter of those that are free (dynamic thresholds, Choudhury and Hahne 1998), so an account alone uses at most a
// tenth of all slots. The other half is reserved for accounts that have none. So accounts whose receivers are slow, whether a few
// with many endpoints or many, leave a slot for every other. When a slot becomes free, the account with the fewest is first, and of
// its endpoints the one with the fewest.
type slots struct {
	mu             sync.Mutex
	free, reserved int
	// used counts the slots in use by account, without zeros.
	used map[uuid.UUID]int
	// waiting are the requests of each account in the order of their arrival, without empty lists.
	waiting map[uuid.UUID][]*slotRequest
	// arrivals numbers the requests.
	arrivals uint64
}

// slotRequest is a request for one slot.
type slotRequest struct {
	account uuid.UUID
	// inFlight is how many slots the endpoint has.
	inFlight int
	arrival  uint64
	// granted is closed once the request has its slot.
	granted chan struct{}
}

func newSlots(size int) *slots {
	return &slots{free: size, reserved: size / 2, used: map[uuid.UUID]int{}, waiting: map[uuid.UUID][]*slotRequest{}}
}

// request requests a slot for an endpoint of an account that has inFlight of them.
func (s *slots) request(account uuid.UUID, inFlight int) *slotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals++
	r := &slotRequest{account: account, inFlight: inFlight, arrival: s.arrivals, granted: make(chan struct{})}
	s.waiting[account] = append(s.waiting[account], r)
	s.grant()
	return r
}

// cancel ends a request, and releases its slot if it has one.
func (s *slots) cancel(r *slotRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.granted:
		s.put(r.account, 1)
	default:
		s.remove(r)
	}
}

// more takes up to n further slots for an account at once, and returns how many. It takes none from a waiting request: a request that
// may have a free slot has been granted it already.
func (s *slots) more(account uuid.UUID, n int) (taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for taken < n && s.eligible(account) {
		s.take(account)
		taken++
	}
	return taken
}

// release releases n slots of an account.
func (s *slots) release(account uuid.UUID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(account, n)
}

func (s *slots) put(account uuid.UUID, n int) {
	s.free += n
	if s.used[account] -= n; s.used[account] <= 0 {
		delete(s.used, account)
	}
	s.grant()
}

func (s *slots) take(account uuid.UUID) {
	s.free--
	s.used[account]++
}

func (s *slots) eligible(account uuid.UUID) bool {
	used := s.used[account]
	return s.free > 0 && (used == 0 || used < (s.free-s.reserved)/shareDivisor)
}

// grant gives the free slots to the requests that may have them.
func (s *slots) grant() {
	for s.free > 0 {
		r := s.first()
		if r == nil {
			return
		}
		s.remove(r)
		s.take(r.account)
		close(r.granted)
	}
}

// first returns the request that gets the next slot, nil if none may have it.
func (s *slots) first() (first *slotRequest) {
	for account, requests := range s.waiting {
		if !s.eligible(account) {
			continue
		}
		next := requests[0]
		for _, r := range requests[1:] {
			if r.inFlight < next.inFlight {
				next = r
			}
		}
		if first == nil || s.before(next, first) {
			first = next
		}
	}
	return first
}

func (s *slots) before(a, b *slotRequest) bool {
	if of, than := s.used[a.account], s.used[b.account]; of != than {
		return of < than
	}
	return a.arrival < b.arrival
}

func (s *slots) remove(r *slotRequest) {
	requests := s.waiting[r.account]
	for n, other := range requests {
		if other == r {
			requests = append(requests[:n], requests[n+1:]...)
			break
		}
	}
	if s.waiting[r.account] = requests; len(requests) == 0 {
		delete(s.waiting, r.account)
	}
}
