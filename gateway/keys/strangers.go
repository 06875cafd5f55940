package keys

import (
	"sync"
	"time"
)

// strangers bounds the unknown keys that are looked up for all addresses together, so that keys tried from very many
// addresses, each within its own budget, cannot load core either. Only those that turn out unknown are charged: good keys
// that are new here use nothing up. Look-ups under way can exceed it by as many as there may be.
type strangers struct {
	// perSecond is how many may be looked up in a second; 0 for no bound.
	perSecond float64

	mu   sync.Mutex
	left float64
	at   time.Duration // when left was true
}

func newStrangers(perSecond int) *strangers {
	return &strangers{perSecond: float64(perSecond), left: float64(perSecond)}
}

// none reports whether no further one may be looked up for now.
func (s *strangers) none(now time.Duration) bool {
	if s.perSecond == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = min(s.perSecond, s.left+(now-s.at).Seconds()*s.perSecond)
	s.at = now
	return s.left < 1
}

// take charges one that turned out unknown.
func (s *strangers) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
}
