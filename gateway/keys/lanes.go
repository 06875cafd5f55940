package keys

import (
	"context"
	"sync"
)

// lanes bound how many look-ups are under way at once for each address, so that an address with many good keys waits
// its turn instead of reserving more of its budget than there is.
type lanes struct {
	mu sync.Mutex
	// width is that of lanes that open from now on.
	width int
	// open are the lanes in use.
	open map[string]*lane
}

type lane struct {
	slots chan struct{}
	users int
}

func newLanes(width int) *lanes { return &lanes{width: width, open: map[string]*lane{}} }

// widen, or narrow, lanes that are not open yet.
func (l *lanes) widen(width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width = width
}

// enter waits for a place in the lane of this name until ctx ends. leave must be called after a nil error only.
func (l *lanes) enter(ctx context.Context, name string) (leave func(), err error) {
	own := l.join(name)
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; l.part(name, own) }, nil
	case <-ctx.Done():
		l.part(name, own)
		return nil, ctx.Err()
	}
}

func (l *lanes) join(name string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.open[name]
	if own == nil {
		own = &lane{slots: make(chan struct{}, l.width)}
		l.open[name] = own
	}
	own.users++
	return own
}

func (l *lanes) part(name string, own *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.open, name)
	}
}
