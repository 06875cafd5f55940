package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// inProcessRedis is a miniredis on a TCP port. miniredis expires keys only by FastForward, which runClock calls with the time
// that has passed.
type inProcessRedis struct {
	server *miniredis.Miniredis
	quit   chan struct{}
	clock  sync.WaitGroup
}

// clockTick is the interval of FastForward, by which a key may expire too late.
const clockTick = 50 * time.Millisecond

// startInProcessRedis retries for a second: after a restart, a child that is being forked may still hold the socket.
func startInProcessRedis(ctx context.Context, address string) (*inProcessRedis, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		m := &inProcessRedis{server: miniredis.NewMiniRedis(), quit: make(chan struct{})}
		err := m.server.StartAddr(address)
		if err == nil {
			m.clock.Go(m.runClock)
			return m, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("start miniredis on %s: %w", address, err)
		}
	}
}

func (m *inProcessRedis) runClock() {
	ticker := time.NewTicker(clockTick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ticker.C:
			now := time.Now()
			m.server.FastForward(now.Sub(last))
			last = now
		case <-m.quit:
			return
		}
	}
}

func (m *inProcessRedis) close() {
	close(m.quit)
	m.clock.Wait()
	m.server.Close()
}
