package access

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

// NewRedis makes the client for the limits, to one server, a Cluster or a master behind Sentinels; the errors never repeat
// rawURL, since it may hold a password. budget is the time one try may wait for Redis, from which the client's timeouts
// follow.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: budget,
		Timeout:     budget,
		PoolTimeout: budget,
		// People sign in seldom; a flood of them waits here rather than in Redis, which gateways need.
		Conns: 4,
	})
}

// outages are the nodes of Redis that are left alone for a while, so that not every visitor waits for them. It is safe for
// concurrent use.
type outages struct {
	mu sync.Mutex
	// until is by the address of a Cluster's node, or by none.
	until map[string]time.Time
}

// on reports whether the node is to be left alone.
func (o *outages) on(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.until[node])
}

// begin has the node left alone for as long.
func (o *outages) begin(node string, now time.Time, length time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, until := range o.until {
		if now.After(until) {
			delete(o.until, other)
		}
	}
	if o.until == nil {
		o.until = map[string]time.Time{}
	}
	o.until[node] = now.Add(length)
}
