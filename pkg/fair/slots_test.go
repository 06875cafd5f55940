package fair_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/fair"
)

func TestSlots_TryAcquire(t *testing.T) {
	t.Parallel()
	s := fair.New[string](3, fair.AtMost(2))
	var got []fair.Result
	for _, owner := range []string{"ann", "ann", "ann", "bob", "bob", "ann"} {
		got = append(got, s.TryAcquire(owner))
	}
	want := []fair.Result{fair.Granted, fair.Granted, fair.OwnerAtMax, fair.Granted, fair.AtMax, fair.OwnerAtMax}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !s.IsOwnerAtMax("ann") || s.IsOwnerAtMax("bob") || s.Used() != 3 || s.Max() != 3 {
		t.Errorf("%d of %d in use, ann has her share: %t, bob: %t", s.Used(), s.Max(), s.IsOwnerAtMax("ann"), s.IsOwnerAtMax("bob"))
	}
	s.ReleaseSome("ann", 2)
	if n := s.TryAcquireSome("bob", 5); n != 1 || s.Used() != 2 {
		t.Errorf("bob has %d more, and %d are in use", n, s.Used())
	}
	unbounded := fair.New[string](0, fair.AtMost(0))
	if n := unbounded.TryAcquireSome("ann", 1000); n != 1000 || unbounded.Used() != 1000 || unbounded.Max() != 0 {
		t.Errorf("without bounds: %d, %d in use of %d", n, unbounded.Used(), unbounded.Max())
	}
}

// An owner whose requests all wait gets no slot before one that comes later and has fewer, and equal owners take turns.
func TestSlots_GreedyOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s := fair.New[string](2, fair.AtMost(2))
		granted := make(chan string, 100)
		waits := func(owner string, n int) {
			for range n {
				go func() {
					release, err := s.Acquire(t.Context(), owner, math.MaxInt)
					if err != nil {
						t.Error(err)
						return
					}
					granted <- owner
					release()
				}()
				synctest.Wait()
			}
		}
		if n := s.TryAcquireSome("greedy", 3); n != 2 {
			t.Fatalf("greedy has %d of 2 slots", n)
		}
		waits("greedy", 4)
		waits("ann", 2)
		waits("bob", 1)
		s.Release("greedy")
		synctest.Wait()
		close(granted)
		var order []string
		for owner := range granted {
			order = append(order, owner)
		}
		// The other slot is greedy's still, so each that has none is before it.
		if diff := cmp.Diff([]string{"ann", "bob", "ann", "greedy", "greedy", "greedy", "greedy"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

// With one slot an owner's second request is behind the first of every other that waited meanwhile.
func TestSlots_Turns(t *testing.T) {
	t.Parallel()
	s := fair.New[string](1, fair.AtMost(1))
	s.TryAcquire("nobody")
	type request struct {
		owner   string
		granted <-chan struct{}
	}
	var waiting []request
	for _, owner := range []string{"ann", "ann", "ann", "bob", "carl", "bob"} {
		granted, _ := s.Request(owner, 0)
		waiting = append(waiting, request{owner, granted})
	}
	var order []string
	for last := "nobody"; len(order) < 6; last = order[len(order)-1] {
		s.Release(last)
		for n, r := range waiting {
			select {
			case <-r.granted:
				order, waiting[n].granted = append(order, r.owner), nil
			default:
			}
		}
	}
	if diff := cmp.Diff([]string{"ann", "bob", "carl", "ann", "bob", "ann"}, order); diff != "" {
		t.Error(diff)
	}
}

// A slot that becomes free goes to the owner with the fewest, and there to the request with the least rank; a cancelled request keeps none.
func TestSlots_Request(t *testing.T) {
	t.Parallel()
	s := fair.New[string](2, fair.ShareOf(func(used, free int) bool { return used == 0 || used < free-1 }))
	if s.TryAcquireSome("busy", 2) != 1 || s.TryAcquireSome("other", 2) != 1 {
		t.Fatal("an owner has another number of the two slots than one")
	}
	has := func(granted <-chan struct{}) bool {
		select {
		case <-granted:
			return true
		default:
			return false
		}
	}
	again, _ := s.Request("busy", 1)
	_, cancel := s.Request("newcomer", 0)
	larger, _ := s.Request("newcomer", 1)
	smaller, cancelSmaller := s.Request("newcomer", 0)
	cancel()
	s.Release("other")
	if has(again) || has(larger) || !has(smaller) {
		t.Errorf("the slot is the busy owner's: %t, the larger rank's: %t, the smaller one's: %t", has(again), has(larger), has(smaller))
	}
	cancelSmaller()
	if has(again) || !has(larger) {
		t.Errorf("the slot of a cancelled request is the busy owner's: %t, the next one's: %t", has(again), has(larger))
	}
	s.Release("busy")
	if !has(again) {
		t.Error("nobody has the slot that the busy owner has released")
	}
}

// A wait ends with its context, and an owner of whom as many wait as may is refused at once; neither keeps a slot.
func TestSlots_Acquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s := fair.New[string](2, fair.AtMost(1))
		release, err := s.Acquire(t.Context(), "ann", 1)
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("no time")
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Acquire(ctx, "ann", 1)
			ended <- err
		}()
		synctest.Wait()
		if _, err := s.Acquire(t.Context(), "ann", 1); !errors.Is(err, fair.ErrTooManyWaiting) {
			t.Errorf("a second that waits: %v", err)
		}
		releaseBob, err := s.Acquire(t.Context(), "bob", 0)
		if err != nil {
			t.Fatalf("another owner: %v", err)
		}
		end(cause)
		if err := <-ended; !errors.Is(err, cause) {
			t.Errorf("after the end of its context: %v", err)
		}
		release()
		releaseBob()
		if s.Used() != 0 || s.TryAcquire("ann") != fair.Granted {
			t.Errorf("%d slots are in use", s.Used())
		}
	})
}
