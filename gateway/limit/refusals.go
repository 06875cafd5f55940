package limit

import (
	"sync/atomic"
	"time"
)

// Refusals remembers the last refusal of one key, so that its repetitions look up neither bucket. The zero value remembers nothing.
// It is safe for concurrent use.
type Refusals struct{ last atomic.Pointer[request] }

// take returns the refusal of a request if the key's last refusal lasts.
func (r *Refusals) take(now time.Time) (d Decision, refused bool) {
	last := r.last.Load()
	if last == nil {
		return Decision{}, false
	}
	if d, refused = last.cachedRefusal(now); !refused {
		r.last.CompareAndSwap(last, nil) // it must not hold copies that the cache has evicted
	}
	return d, refused
}
