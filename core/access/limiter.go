package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"intents.internal/pkg/topology"
)

const (
	// cooldown is how long a Redis node is not asked after it failed, so that only one visitor a second waits for its timeout.
	cooldown = time.Second
	// logEvery is the least time between two log lines of failures.
	logEvery = 10 * time.Second
	// redisPrefix is what redis_rate puts before a bucket's name.
	redisPrefix = "rate:"
	// memoryBuckets bounds the buckets in memory, about 200 bytes each. An evicted bucket counts as full.
	memoryBuckets = 1 << 16
)

// errNoRedis says that Redis is not configured, failed or cools down.
var errNoRedis = errors.New("no redis to count in")

// NewRedis makes the client for the limits. Its errors never repeat rawURL, which may hold a password. The client's timeouts follow
// from budget, the time that one call may take.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: budget,
		Timeout:     budget,
		PoolTimeout: budget,
		// Sign-ins are rare; a flood of them waits in core rather than in Redis, which gateways need.
		Conns: 4,
	})
}

// limiter keeps buckets in Redis, which all cores share, and in this core's memory while Redis does not answer. It is safe for
// concurrent use.
type limiter struct {
	client  redis.UniversalClient
	redis   *redis_rate.Limiter // nil without Redis
	memory  *memory
	tripped sync.Map // of time.Time, the end of the cooldown, by node of a Cluster or ""
	warn    rate.Sometimes
	log     *slog.Logger
	metrics limiterMetrics
}

func newLimiter(config Config) (*limiter, error) {
	memory, err := newMemory()
	if err != nil {
		return nil, err
	}
	l := &limiter{
		client: config.Redis, memory: memory, warn: rate.Sometimes{Interval: logEvery},
		log: config.Log, metrics: newLimiterMetrics(config.Metrics),
	}
	if config.Redis != nil {
		l.redis = redis_rate.NewLimiter(topology.AtMostOnce{UniversalClient: config.Redis})
	}
	return l, nil
}

// limit is one of the Limits. Its name begins the names of its buckets.
type limit struct {
	*limiter
	name string
	rate redis_rate.Limit
}

// limit returns a limit of n tries a period.
func (l *limiter) limit(name string, n int, period time.Duration) limit {
	l.metrics.create(name)
	return limit{l, name, redis_rate.Limit{Rate: n, Burst: n, Period: period}}
}

// take takes one try out of the subject's bucket, or returns a *LimitedError and takes none.
func (l limit) take(ctx context.Context, subject string) error {
	bucket, source, wait := l.name+":"+subject, "", time.Duration(0)
	err := l.call(ctx, bucket, func() error {
		result, err := l.redis.Allow(ctx, bucket, l.rate)
		if err == nil && result.Allowed == 0 {
			wait = max(result.RetryAfter, time.Millisecond)
		}
		return err
	})
	if errors.Is(err, errNoRedis) {
		wait, err = l.memory.take(bucket, l.rate), nil
		if l.redis != nil {
			source = "fallback_"
		}
	}
	if err != nil {
		return err
	}
	if wait > 0 {
		l.metrics.decisions.WithLabelValues(l.name, source+"refused").Inc()
		return &LimitedError{RetryAfter: wait}
	}
	l.metrics.decisions.WithLabelValues(l.name, source+"allowed").Inc()
	return nil
}

// reset fills the subject's bucket. A bucket in Redis stays as it is if Redis fails.
func (l limit) reset(ctx context.Context, subject string) {
	bucket := l.name + ":" + subject
	l.memory.reset(bucket)
	_ = l.call(ctx, bucket, func() error { return l.redis.Reset(ctx, bucket) }) // call has logged it
}

// refund puts one try back into the subject's bucket. A bucket in Redis that would be full then stays one try short until it has
// refilled.
func (l limit) refund(ctx context.Context, subject string) {
	bucket := l.name + ":" + subject
	err := l.call(ctx, bucket, func() error {
		_, err := l.redis.AllowN(ctx, bucket, l.rate, -1)
		return err
	})
	if errors.Is(err, errNoRedis) {
		l.memory.refund(bucket, l.rate)
	}
}

// call runs a command on a bucket in Redis. It returns errNoRedis where that cannot be had, or the error of ctx.
func (l *limiter) call(ctx context.Context, bucket string, command func() error) error {
	node, ok := l.node(bucket)
	if !ok {
		return errNoRedis
	}
	if err := command(); err != nil {
		return l.trip(ctx, node, err)
	}
	return nil
}

// node names the Cluster node that has the bucket, "" without a Cluster, and reports whether Redis can be asked.
func (l *limiter) node(bucket string) (node string, ok bool) {
	if l.redis == nil {
		return "", false
	}
	node = topology.Node(l.client, redisPrefix+bucket)
	until, tripped := l.tripped.Load(node)
	return node, !tripped || time.Now().After(until.(time.Time))
}

// trip starts a node's cooldown after a failure and returns errNoRedis. A visitor who left is no failure.
func (l *limiter) trip(ctx context.Context, node string, cause error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("count a try: %w", err)
	}
	l.tripped.Store(node, time.Now().Add(cooldown))
	l.metrics.failures.Inc()
	l.warn.Do(func() {
		l.log.LogAttrs(ctx, slog.LevelWarn, "redis of CORE_REDIS_URL failed, counting tries in this core alone", slog.Any("error", cause))
	})
	return errNoRedis
}

// memory keeps for each bucket the time at which it will be full, redis_rate's theoretical arrival time (GCRA).
type memory struct {
	mu   sync.Mutex
	full *simplelru.LRU[string, time.Time]
}

func newMemory() (*memory, error) {
	full, err := simplelru.NewLRU[string, time.Time](memoryBuckets, nil)
	return &memory{full: full}, err
}

// take returns how long to wait for a try, 0 if it took one.
func (m *memory) take(bucket string, r redis_rate.Limit) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, interval := time.Now(), r.Period/time.Duration(r.Rate)
	full, found := m.full.Get(bucket)
	if !found || full.Before(now) {
		full = now
	}
	full = full.Add(interval)
	if wait := full.Sub(now) - time.Duration(r.Burst)*interval; wait > 0 {
		return max(wait, time.Millisecond)
	}
	m.full.Add(bucket, full)
	return 0
}

func (m *memory) reset(bucket string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full.Remove(bucket)
}

func (m *memory) refund(bucket string, r redis_rate.Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if full, found := m.full.Get(bucket); found {
		m.full.Add(bucket, full.Add(-r.Period/time.Duration(r.Rate)))
	}
}
