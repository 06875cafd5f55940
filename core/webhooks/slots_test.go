package webhooks_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/webhooks"
	"intents.internal/pkg/fair"
)

// However many accounts take all they can get, one that has nothing in flight gets a slot at once.
func TestSlots_Newcomer(t *testing.T) {
	t.Parallel()
	for _, hogs := range []int{1, 3, 12, 100, 240} {
		slots := webhooks.NewSlots(512)
		for taken := true; taken; { // in turn, until nobody gets another
			taken = false
			for n := range hogs {
				taken = slots.TryAcquireSome(uuid.UUID{1, byte(n), byte(n >> 8)}, 8) > 0 || taken
			}
		}
		if slots.TryAcquire(uuid.UUID{2}) != fair.Granted {
			t.Errorf("%d accounts have all slots", hogs)
		}
	}
}

// An account alone gets a tenth of all slots, and the next one nearly as many.
func TestSlots_Share(t *testing.T) {
	t.Parallel()
	slots := webhooks.NewSlots(500)
	first, second := slots.TryAcquireSome(uuid.UUID{1}, 500), slots.TryAcquireSome(uuid.UUID{2}, 500)
	if first != 50 || second != 40 {
		t.Errorf("%d and %d slots of 500", first, second)
	}
}

// Half of the leases are for accounts that have none. A process without room hands back some that it has had for long, so that
// endpoints that always have something due keep none out.
func TestDispatcher_LeaseCapacity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		leased  int
		since   time.Duration
		want    webhooks.LeaseRoom
		yielded int
	}{
		{0, time.Minute, webhooks.LeaseRoom{Free: 500, Shared: 2000}, 0},
		{1900, time.Minute, webhooks.LeaseRoom{Free: 500, Shared: 100}, 0},
		{3999, time.Minute, webhooks.LeaseRoom{Free: 1}, 0},
		{4000, time.Second, webhooks.LeaseRoom{}, 0},
		{4000, time.Minute, webhooks.LeaseRoom{}, 250},
	} {
		if got, yielded := webhooks.LeaseCapacity(c.leased, c.since); got != c.want || yielded != c.yielded {
			t.Errorf("with %d for %s: %+v and %d are handed back, want %+v and %d", c.leased, c.since, got, yielded, c.want, c.yielded)
		}
	}
}
