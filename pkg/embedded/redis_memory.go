package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// memoryRedis is a Redis inside this process, on a real port. miniredis never expires a key by itself, so its clock is
// moved on with the real one.
type memoryRedis struct {
	server *miniredis.Miniredis
	quit   chan struct{}
	clock  sync.WaitGroup
}

// memoryTick is how far from its time a key may expire.
const memoryTick = 50 * time.Millisecond

// startMemoryRedis keeps trying for a second: after a restart, a child that was just being forked may still hold the socket.
func startMemoryRedis(ctx context.Context, address string) (*memoryRedis, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		m := &memoryRedis{server: miniredis.NewMiniRedis(), quit: make(chan struct{})}
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

func (m *memoryRedis) runClock() {
	ticker := time.NewTicker(memoryTick)
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

func (m *memoryRedis) close() {
	close(m.quit)
	m.clock.Wait()
	m.server.Close()
}
