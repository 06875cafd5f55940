package postgres

import (
	"context"

	"github.com/google/uuid"
)

// Semaphore bounds work that many owners share: so many at once, and one of each owner. Who waits has no connection. It is safe for
// concurrent use.
type Semaphore struct {
	places chan struct{}
	owners ownerSlots
}

// NewSemaphore returns a semaphore of so many places.
func NewSemaphore(places int) *Semaphore { return &Semaphore{places: make(chan struct{}, places)} }

// Acquire waits for a place. The caller must call release after the work. It returns ErrTooManyWaiting if more than most of the owner's wait,
// or the cause of the end of ctx.
func (s *Semaphore) Acquire(ctx context.Context, owner uuid.UUID, most int) (release func(), err error) {
	own := s.owners.ref(owner, most)
	if own == nil {
		return nil, ErrTooManyWaiting
	}
	for acquired, place := range []chan struct{}{own.place, s.places} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if acquired > 0 {
				<-own.place
			}
			s.owners.unref(owner, own)
			return nil, context.Cause(ctx)
		}
	}
	return func() {
		<-s.places
		<-own.place
		s.owners.unref(owner, own)
	}, nil
}
