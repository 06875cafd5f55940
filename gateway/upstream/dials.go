package upstream

import (
	"context"
	"sync"
)

// dials are the connections to a core that are being opened. The zero value has none.
type dials struct {
	mu      sync.Mutex
	cancels map[*context.CancelCauseFunc]struct{}
}

// watch returns a context for one dial, which cancel ends with errGivenBack as its cause. done must be called after the dial.
func (d *dials) watch(parent context.Context) (ctx context.Context, done func()) {
	ctx, end := context.WithCancelCause(parent)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancels == nil {
		d.cancels = map[*context.CancelCauseFunc]struct{}{}
	}
	d.cancels[&end] = struct{}{}
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.cancels, &end)
		end(nil)
	}
}

// cancel ends all dials.
func (d *dials) cancel() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for end := range d.cancels {
		(*end)(errGivenBack)
	}
}
