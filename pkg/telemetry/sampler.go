package telemetry

import (
	"sync/atomic"
	"time"
)

// Sampler allows one log line per interval, the first one at once, and counts the lines that it suppresses. It is safe for
// concurrent use.
type Sampler struct {
	// Every is the interval; zero allows every line.
	Every      time.Duration
	next       atomic.Int64
	suppressed atomic.Int64
}

// Due reports whether a line may be written now, and how many were suppressed since the last one.
func (s *Sampler) Due() (suppressed int64, due bool) {
	now, next := time.Now(), s.next.Load()
	if now.UnixNano() < next || !s.next.CompareAndSwap(next, now.Add(s.Every).UnixNano()) {
		s.suppressed.Add(1)
		return 0, false
	}
	return s.suppressed.Swap(0), true
}
