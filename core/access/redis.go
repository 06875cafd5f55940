package access

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"intents.internal/pkg/telemetry"
)

// go-redis prints every failed dial; the log line of the limits, sampled, says the same once.
func init() { logging.Disable() }

// NewRedis makes the client for the limits. rawURL is redis://, rediss:// or unix://; the errors never repeat it, since it
// may hold a password. budget is the time one try may wait for Redis, from which the client's timeouts follow.
func NewRedis(rawURL string, budget time.Duration) (*redis.Client, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, errors.New("must be a URL such as redis://127.0.0.1:6379/0")
	}
	// A try that was sent may have been counted, so nothing is ever sent twice: no retries of calls or dials.
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.DialTimeout = budget
	options.ReadTimeout = budget
	options.WriteTimeout = budget
	options.PoolTimeout = budget
	options.ContextTimeoutEnabled = true
	// People sign in seldom; a flood of them waits here rather than in Redis, which gateways need.
	options.PoolSize = 4
	options.MaxActiveConns = options.PoolSize
	// RESP2 and no handshake extras: a new connection is usable after the TCP handshake alone.
	options.Protocol = 2
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(options), nil
}

// RedisPool is the metrics of a client's connections.
func RedisPool(client *redis.Client) prometheus.Collector {
	limit := client.Options().PoolSize
	return telemetry.Pool("core", "redis", func() telemetry.PoolState {
		stats := client.PoolStats()
		return telemetry.PoolState{
			Limit: limit, Open: int(stats.TotalConns), InUse: int(stats.TotalConns) - int(stats.IdleConns),
			Waits: uint64(stats.WaitCount), TimedOut: uint64(stats.Timeouts),
		}
	})
}
