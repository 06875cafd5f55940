package keys

import (
	"testing"
	"time"
)

// A flood is looked up one by one, at the rate that is allowed, and not in bursts of all that may be under way at once.
func TestStrangersComeOneByOneInAFlood(t *testing.T) {
	t.Parallel()
	s := newStrangers(100)
	for range 100 { // the burst that a full bucket allows
		if !s.enter(0) {
			t.Fatal("one of the first hundred was turned away")
		}
		s.leave(true)
	}
	if s.enter(0) {
		t.Error("one more than a hundred was let in at once")
	}
	now := 15 * time.Millisecond
	if !s.enter(now) {
		t.Fatal("nobody was let in although a hundredth of a second had passed")
	}
	if s.enter(now) {
		t.Error("a second one was let in beside the only one there was a place for")
	}
	s.leave(true)
	if now += 10 * time.Millisecond; !s.enter(now) {
		t.Error("the next one was turned away")
	}
}

// Good keys that are new to this gateway cost nothing, however many there are.
func TestStrangersThatAreKnownAfterAllAreFree(t *testing.T) {
	t.Parallel()
	s := newStrangers(2)
	for n := range 1000 {
		if !s.enter(0) {
			t.Fatalf("the good key %d was turned away", n)
		}
		if n%2 == 0 {
			defer s.leave(false)
		} else {
			s.leave(false)
		}
	}
}
