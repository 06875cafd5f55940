package limit

import (
	"sync/atomic"
	"time"
)

// Refusals remembers the last refusal of one key, so that its repetitions look up neither bucket. The zero value remembers nothing.
// It is safe for concurrent use.
type Refusals struct{ last atomic.Pointer[request] }

// take returns the refusal of a request of this cost if the key's last refusal, of whatever cost, leaves too little for it.
func (r *Refusals) take(cost int, now time.Time) (d Decision, refused bool) {
	last := r.last.Load()
	if last == nil {
		return Decision{}, false
	}
	if d, refused = last.cachedRefusal(cost, now); !refused {
		r.last.CompareAndSwap(last, nil) // it must not hold copies that the cache has evicted
	}
	return d, refused
}
