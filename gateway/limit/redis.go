package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis prints every failed dial; the limiter's own log line, sampled, says the same once.
func init() { logging.Disable() }

// NewRedis makes the client the limiter's calls go through. rawURL is redis://, rediss:// or unix://; the errors never
// repeat it, since it may hold a password. budget is the time one decision may take, from which the client's timeouts
// follow.
func NewRedis(rawURL string, budget time.Duration) (*redis.Client, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, errors.New("must be a URL such as redis://127.0.0.1:6379/0")
	}
	// A decision that was sent may have been charged, so nothing is ever sent twice: no retries of calls or dials.
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.DialTimeout = 2 * budget
	options.ReadTimeout = budget + 10*time.Millisecond
	options.WriteTimeout = budget + 10*time.Millisecond
	options.PoolTimeout = budget * 2 / 5
	options.ContextTimeoutEnabled = true
	// One batch is under way at a time and one token on its way back; others may be in the closing. The pool's nominal
	// size is the number of failed dials after which go-redis itself dials no more than once a second, which the breaker does
	// better: a Redis that is back is found by the next probe.
	options.MaxActiveConns = 4
	options.PoolSize = 1 << 14
	// RESP2 and no handshake extras: a new connection is usable after the TCP handshake alone.
	options.Protocol = 2
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(options), nil
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
