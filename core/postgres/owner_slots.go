package postgres

import (
	"sync"

	"github.com/google/uuid"
)

// ownerSlots are slots of one place for each owner. It is safe for concurrent use; the zero value has no owner.
type ownerSlots struct {
	mu    sync.Mutex
	slots map[uuid.UUID]*ownerSlot
}

// ownerSlot is the slot of one owner, which exists while somebody has it or waits for it. Who sends to place has it, and receives to release it.
type ownerSlot struct {
	place chan struct{}
	refs  int
}

// ref returns the slot of an owner, nil if more than most have it or wait for it. The caller must call unref.
func (o *ownerSlots) ref(owner uuid.UUID, most int) *ownerSlot {
	o.mu.Lock()
	defer o.mu.Unlock()
	slot := o.slots[owner]
	if slot == nil {
		slot = &ownerSlot{place: make(chan struct{}, 1)}
		if o.slots == nil {
			o.slots = map[uuid.UUID]*ownerSlot{}
		}
		o.slots[owner] = slot
	}
	if slot.refs > most {
		return nil
	}
	slot.refs++
	return slot
}

func (o *ownerSlots) unref(owner uuid.UUID, slot *ownerSlot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slot.refs--; slot.refs == 0 {
		delete(o.slots, owner)
	}
}
