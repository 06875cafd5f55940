package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// watch follows the metrics of gateways while something is done to them.
type watch struct {
	t     *testing.T
	fleet []*gateway
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu sync.Mutex
	// healed is when the fault ended, atHealed has what each gateway had counted by then, and recovered when Redis was first seen to
	// decide for it after that.
	healed    time.Time
	atHealed  []system.Metrics
	recovered []time.Time
	// goroutines and descriptors are the most that one gateway had.
	goroutines, descriptors float64
}

// watchEvery is the resolution of a watch.
const watchEvery = 100 * time.Millisecond

func startWatch(t *testing.T, fleet []*gateway) *watch {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watch{t: t, fleet: fleet, stop: stop}
	w.done.Go(func() { w.run(ctx) })
	t.Cleanup(w.end)
	return w
}

func (w *watch) end() {
	w.stop()
	w.done.Wait()
}

func (w *watch) run(ctx context.Context) {
	every(ctx, watchEvery, func() {
		for n, g := range w.fleet {
			if m, err := g.TryMetrics(w.t); err == nil {
				w.note(n, m)
			}
		}
	})
}

// Metrics of the gateway.
const (
	fallbackDecisions = `intents_gateway_limit_decisions_total{decision="fallback_`
	allowedByRedis    = `intents_gateway_limit_decisions_total{decision="allowed"}`
	refusedByRedis    = `intents_gateway_limit_decisions_total{decision="refused"}`
	failedCalls       = "intents_gateway_limit_redis_failures_total"
	degraded          = "intents_gateway_limit_degraded"
)

func byRedis(m system.Metrics) float64 { return m[allowedByRedis] + m[refusedByRedis] }

func (w *watch) note(n int, m system.Metrics) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.healed.IsZero() && w.recovered[n].IsZero() && m[degraded] == 0 && byRedis(m) > byRedis(w.atHealed[n]) {
		w.recovered[n] = time.Now()
	}
	w.goroutines = max(w.goroutines, m["go_goroutines"])
	w.descriptors = max(w.descriptors, m["process_open_fds"])
}

// current is the sum of a metric over all gateways, now.
func (w *watch) current(t *testing.T, prefix string) (total float64) {
	t.Helper()
	for _, g := range w.fleet {
		total += g.Metrics(t).Sum(prefix)
	}
	return total
}

// heal notes that the fault has ended now.
func (w *watch) heal(t *testing.T) time.Time {
	t.Helper()
	now := time.Now()
	at := make([]system.Metrics, len(w.fleet))
	for n, g := range w.fleet {
		at[n] = g.Metrics(t)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed, w.atHealed, w.recovered = now, at, make([]time.Time, len(w.fleet))
	return now
}

// awaitRecovery waits until Redis decides for every gateway again, and returns how long after the fault that was, to within watchEvery.
func (w *watch) awaitRecovery(t *testing.T) (longest time.Duration) {
	t.Helper()
	asynctest.Eventually(t, "Redis decides again", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, at := range w.recovered {
			if at.IsZero() {
				return false
			}
			longest = max(longest, at.Sub(w.healed))
		}
		return true
	})
	return longest
}

func (w *watch) peaks() (goroutines, descriptors int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.goroutines), int(w.descriptors)
}
