package watch_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/core/watch"
)

// Reports end the pause between two polls, but never make a chain poll more often than CORE_CHAIN_TICK.
func TestLoop_ReportsRespectTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	synctest.Test(t, func(t *testing.T) {
		watcher := watch.New(watch.Config{
			Store: w.store.Intents, Watched: w.store.Watched, Registry: w.live, Client: w.watcher.Client, Log: slog.New(slog.DiscardHandler), Tick: 4 * time.Second,
		})
		loop := watcher.Unleased(sepolia)
		for range 5 {
			started := time.Now()
			if !loop.WaitAfterWake(t.Context(), time.Millisecond) || time.Since(started) != 4*time.Second {
				t.Errorf("polled again %v after a poll", time.Since(started))
			}
		}
	})
}
