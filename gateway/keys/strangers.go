package keys

import (
	"sync"
	"time"
)

// strangers bounds the unknown keys that are looked up for all addresses together, so that keys tried from very many
// addresses, each within its own budget, cannot load core either. Only those that turn out unknown are charged: good keys
// that are new here use nothing up, and where the filter has them they are not even counted among strangers. Until then
// as many can be looked up at once as there may be look-ups under way; but once half of a second's are spent, each look-up
// must have one of its own left, so that a flood is looked up one by one and not in bursts.
type strangers struct {
	mu sync.Mutex
	// perSecond is how many may be looked up in a second; 0 for no bound.
	perSecond float64
	left      float64
	at        time.Duration // when left was true
	underway  int
}

func newStrangers(perSecond int) *strangers {
	return &strangers{perSecond: float64(perSecond), left: float64(perSecond)}
}

// bound changes how many may be looked up in a second; what is left of the second before stays used up.
func (s *strangers) bound(perSecond int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perSecond == 0 {
		s.left = float64(perSecond)
	}
	s.perSecond = float64(perSecond)
}

// enter reports whether another may be looked up now. If so, leave must be called.
func (s *strangers) enter(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perSecond == 0 {
		s.underway++
		return true
	}
	s.left = min(s.perSecond, s.left+(now-s.at).Seconds()*s.perSecond)
	s.at = now
	if flooded := s.left < s.perSecond/2; s.left < 1 || flooded && s.left < float64(1+s.underway) {
		return false
	}
	s.underway++
	return true
}

// leave ends what enter began, and charges for a key that turned out unknown.
func (s *strangers) leave(unknown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway--
	if unknown && s.perSecond > 0 {
		s.left--
	}
}
