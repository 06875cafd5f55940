package cores

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// failureHalfLife is the time in which half of a core's failures are forgotten.
	failureHalfLife = time.Second
	// maxFailures bounds the failures of a core, so that it is forgiven within eleven half-lives.
	maxFailures = 64
	// minFailures is what is left of a failure after five half-lives, when it is forgotten.
	minFailures = 1.0 / 32
)

// failures is the decayed number of a core's recent failures, nil for none. A failure counts as a request in flight (Finagle's peak EWMA
// charges it likewise), because a core that fails at once would otherwise have the shortest queue and draw the requests of all others.
// Under load the core still gets about one request in failureHalfLife ÷ latency, which finds out that it works again.
type failures struct{ latest atomic.Pointer[decayed] }

// decayed is a value at a time.
type decayed struct {
	value float64
	at    time.Time
}

// after returns the value after failures have been forgotten until now.
func (d *decayed) after(now time.Time) float64 {
	return d.value * math.Exp2(-float64(now.Sub(d.at))/float64(failureHalfLife))
}

// add counts a failure.
func (f *failures) add() {
	for {
		now, next := time.Now(), 1.0
		latest := f.latest.Load()
		if latest != nil {
			next = min(latest.after(now)+1, maxFailures)
		}
		if f.latest.CompareAndSwap(latest, &decayed{next, now}) {
			return
		}
	}
}

// load is the failures in units of requests in flight.
func (f *failures) load() float64 {
	latest := f.latest.Load()
	if latest == nil {
		return 0
	}
	value := latest.after(time.Now())
	if value < minFailures {
		f.latest.CompareAndSwap(latest, nil)
		return 0
	}
	return value
}
