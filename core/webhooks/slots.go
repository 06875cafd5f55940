package webhooks

import (
	"github.com/google/uuid"

	"intents.internal/pkg/fair"
)

// shareDivisor is the part of the shared free slots that an account may have in use: a quarter.
const shareDivisor = 4

// newSlots returns the slots of requests in flight, fair to accounts. Half of the slots are shared: an account gets another of them while it
// has fewer than a quarter of those that are free (dynamic thresholds, Choudhury and Hahne 1998), so an account alone uses at most a
// tenth of all slots. The other half is reserved for accounts that have none. So accounts whose receivers are slow, whether a few
// with many endpoints or many, leave a slot for every other. An account's endpoint with the fewest requests in flight is first.
func newSlots(size int) *fair.Slots[uuid.UUID] {
	reserved := size / 2
	return fair.New[uuid.UUID](size, fair.ShareOf(func(used, free int) bool { return used == 0 || used < (free-reserved)/shareDivisor }))
}
