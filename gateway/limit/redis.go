package limit

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

// NewRedis makes the limiter's client of one server, a Cluster or a master behind Sentinels. The client's timeouts follow from
// the budget, which bounds one call. Errors never repeat rawURL, since it may hold a password.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: 2 * budget,
		Timeout:     budget + 10*time.Millisecond,
		PoolTimeout: budget * 2 / 5,
		// One batch is sent at a time; other connections may be closing. The pool is so large that go-redis never stops dialing a
		// Redis that fails: the breaker limits the dials, and its next probe finds a Redis that answers again.
		Conns:    4,
		PoolSize: 1 << 14,
	})
}

// Fallback decides on requests while Redis does not answer.
type Fallback string

const (
	// Local limits each key and account on this replica alone, from Redis's last answer on: N replicas admit at most N times the limit.
	Local Fallback = "local"
	// Open admits every request.
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
