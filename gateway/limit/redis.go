package limit

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

// NewRedis makes the client the limiter's calls go through, to one server, a Cluster or a master behind Sentinels; the
// errors never repeat rawURL, since it may hold a password. budget is the time one decision may take, from which the client's
// timeouts follow.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: 2 * budget,
		Timeout:     budget + 10*time.Millisecond,
		PoolTimeout: budget * 2 / 5,
		// One batch is under way at a time and one token on its way back; others may be in the closing. The breaker spaces the
		// dials to a Redis that fails, and better than go-redis would: one that is back is found by the next probe.
		Conns:    4,
		PoolSize: 1 << 14,
	})
}

// Fallback is what happens to requests while Redis does not answer.
type Fallback string

const (
	// Local limits each key on this replica alone, going on from what Redis said last: N replicas may admit N times the
	// limit, no more.
	Local Fallback = "local"
	// Open lets every request through.
	Open Fallback = "open"
	// Closed refuses every request as unavailable.
	Closed Fallback = "closed"
)

// UnmarshalText reads local, open or closed.
func (f *Fallback) UnmarshalText(text []byte) error {
	switch policy := Fallback(text); policy {
	case Local, Open, Closed:
		*f = policy
		return nil
	default:
		return fmt.Errorf("must be local, open or closed, not %q", text)
	}
}
