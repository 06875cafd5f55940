package limit

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

// NewRedis returns the limiter's client of one server, a Cluster or a master behind Sentinels. The client's timeouts are derived
// from the budget, which bounds one call. Errors never repeat rawURL, because it may contain a password.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: 2 * budget,
		Timeout:     budget + 10*time.Millisecond,
		PoolTimeout: budget * 2 / 5,
		// Only one batch is sent at a time; other connections may be closing. The pool is so large that go-redis never stops
		// dialing a Redis that fails: the breaker limits the dials, and its next probe notices a recovery.
		Conns:    4,
		PoolSize: 1 << 14,
	})
}

// Fallback decides on requests while Redis does not respond.
type Fallback string

const (
	// Local limits each key and account on this replica alone, starting from Redis's last response: N replicas admit at most N
	// times the limit.
	Local Fallback = "local"
	// Open admits every request.
	Open Fallback = "open"
	// Closed rejects every request as unavailable.
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
