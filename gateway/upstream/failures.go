package upstream

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
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

// isFailure reports whether an attempt says that its core fails: a status of 500 or above, whoever made it, a refusal, or no response.
// A client that has gone, a full pool and a deadline that was used up elsewhere say nothing of the core.
func (a attempt) isFailure() bool {
	switch {
	case a.err == nil:
		return a.by == byRefusingCore || a.status >= fasthttp.StatusInternalServerError
	case errors.Is(a.err, ErrClientGone), errors.Is(a.err, ErrBusy), errors.Is(a.err, errNoTime), errors.Is(a.err, errGivenBack):
		return false
	default:
		return true
	}
}
