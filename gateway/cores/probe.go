package cores

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// probeInterval is how often a core that is up is probed. A core that shuts down announces it for longer than this interval
	// plus a probe's timeout.
	probeInterval = 500 * time.Millisecond
	// minRetry and maxRetry bound the pause between the probes of an ejected core, which doubles each time.
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
	// probeGap is the minimum pause between two probes of a core.
	probeGap = 10 * time.Millisecond
)

// probeLoop probes one core until ctx ends.
func (s *Set) probeLoop(ctx context.Context, c *Core) {
	retry, logged := minRetry, Up
	for {
		result, err := c.Transport.Probe(ctx)
		if ctx.Err() != nil {
			return
		}
		c.setProbeResult(result)
		if result == Up {
			s.setReady()
		}
		if (result == Up) != (logged == Up) {
			s.logState(ctx, c, err)
		}
		logged = result
		pause := probeInterval
		if result == Up {
			retry = minRetry
		} else {
			pause, retry = retry, min(2*retry, maxRetry)
		}
		if !wait(ctx, probeGap, nil) || !wait(ctx, jitter(pause), c.probeNow) {
			return
		}
	}
}

func (s *Set) setReady() {
	now := time.Now()
	s.readyAt.Store(&now)
}

// Unready is the time since a core last answered its probe as ready, or since the set was made. A core that cannot reach its database is
// not ready, and still answers what it has in memory.
func (s *Set) Unready() time.Duration { return time.Since(*s.readyAt.Load()) }

func (s *Set) logState(ctx context.Context, c *Core, err error) {
	if err != nil {
		s.log.WarnContext(ctx, "core ejected", "core", c.Address, "error", err)
		return
	}
	s.log.InfoContext(ctx, "core up again", "core", c.Address)
}

// jitter spreads the probes of many gateways over time.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5) //nolint:gosec // not a secret
}

// wait waits for d or a signal, and returns false once ctx has ended.
func wait(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-signal:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
