package identity

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

	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/topology"
)

const (
	// cooldown is how long a Redis node is not called after a failure, so that only one client a second waits for its timeout.
	cooldown = time.Second
	// logEvery is the minimum time between two log lines of failures.
	logEvery = 10 * time.Second
	// memoryBuckets bounds the buckets in memory, about 200 bytes each. An evicted bucket counts as full.
	memoryBuckets = 1 << 16
)

// errNoRedis means that Redis is not configured, failed or cools down.
var errNoRedis = errors.New("no redis to count in")

// NewRedis returns the client for the limits. Its errors never repeat rawURL, which may contain a password. The client's timeouts
// are derived from budget, which bounds one call.
func NewRedis(mode topology.Mode, rawURL string, budget time.Duration) (redis.UniversalClient, error) {
	return topology.New(mode, rawURL, topology.Options{
		DialTimeout: budget,
		Timeout:     budget,
		PoolTimeout: budget,
		// Sign-ins are rare; a flood of them waits in core rather than in Redis, which the gateways need.
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

// limit is one of the Limits. Its name is the prefix of the names of its buckets.
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

// take takes one token from the subject's bucket, or returns a *LimitedError and takes none.
func (l limit) take(ctx context.Context, subject string) error {
	bucket := tokenbucket.Bucket{Name: l.name + ":" + subject, Rule: tokenbucket.Rule(l.rate)}
	return l.takeAll(ctx, l.name, tokenbucket.Prefix+bucket.Name, func() (wait time.Duration, err error) {
		result, err := l.redis.Allow(ctx, bucket.Name, l.rate)
		if err == nil && result.Allowed == 0 {
			wait = max(result.RetryAfter, time.Millisecond)
		}
		return wait, err
	}, bucket)
}

// takeRequest takes one token from the bucket of a key and one from the bucket of its account, which core shares with the
// gateways.
func (l *limiter) takeRequest(ctx context.Context, key, account tokenbucket.Bucket) error {
	return l.takeAll(ctx, keyLimit, tokenbucket.AccountHash(account.Name), func() (wait time.Duration, err error) {
		return tokenbucket.Take(ctx, l.client, key, account)
	}, key, account)
}

// takeAll takes one token from each of the buckets, or returns a *LimitedError and takes none. allow calls Redis; key is any key
// on the node of the buckets.
func (l *limiter) takeAll(ctx context.Context, limit, key string, allow func() (wait time.Duration, err error), buckets ...tokenbucket.Bucket) error {
	source, wait := "", time.Duration(0)
	err := l.call(ctx, key, func() (err error) {
		wait, err = allow()
		return err
	})
	if errors.Is(err, errNoRedis) {
		wait, err = l.memory.take(buckets...), nil
		if l.redis != nil {
			source = "fallback_"
		}
	}
	if err != nil {
		return err
	}
	if wait > 0 {
		l.metrics.decisions.WithLabelValues(limit, source+"refused").Inc()
		return &LimitedError{RetryAfter: wait}
	}
	l.metrics.decisions.WithLabelValues(limit, source+"allowed").Inc()
	return nil
}

// reset fills the subject's bucket. A bucket in Redis is unchanged if Redis fails.
func (l limit) reset(ctx context.Context, subject string) {
	bucket := l.name + ":" + subject
	l.memory.reset(bucket)
	_ = l.call(ctx, tokenbucket.Prefix+bucket, func() error { return l.redis.Reset(ctx, bucket) }) // call has logged it
}

// refund returns one token to the subject's bucket. A bucket in Redis that would become full stays one token short until it has
// refilled.
func (l limit) refund(ctx context.Context, subject string) {
	bucket := l.name + ":" + subject
	err := l.call(ctx, tokenbucket.Prefix+bucket, func() error {
		_, err := l.redis.AllowN(ctx, bucket, l.rate, -1)
		return err
	})
	if errors.Is(err, errNoRedis) {
		l.memory.refund(bucket, l.rate)
	}
}

// call runs a command on a key in Redis. It returns errNoRedis if Redis is unavailable, or the error of ctx.
func (l *limiter) call(ctx context.Context, key string, command func() error) error {
	node, ok := l.node(key)
	if !ok {
		return errNoRedis
	}
	if err := command(); err != nil {
		return l.trip(ctx, node, err)
	}
	return nil
}

// node returns the Cluster node that has the key, "" without a Cluster, and whether Redis may be called.
func (l *limiter) node(key string) (node string, ok bool) {
	if l.redis == nil {
		return "", false
	}
	node = topology.Node(l.client, key)
	until, tripped := l.tripped.Load(node)
	return node, !tripped || time.Now().After(until.(time.Time))
}

// trip starts a node's cooldown after a failure and returns errNoRedis. A client that disconnected is not a failure.
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

// memory stores for each bucket when it will be full, redis_rate's theoretical arrival time (GCRA).
type memory struct {
	mu   sync.Mutex
	full *simplelru.LRU[string, time.Time]
}

func newMemory() (*memory, error) {
	full, err := simplelru.NewLRU[string, time.Time](memoryBuckets, nil)
	return &memory{full: full}, err
}

// take takes one token from each of the buckets and returns 0, or takes none and returns the time until it could.
func (m *memory) take(buckets ...tokenbucket.Bucket) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, fullAt := time.Now(), make([]time.Time, len(buckets))
	for i, bucket := range buckets {
		interval := bucket.Rule.Period / time.Duration(bucket.Rule.Rate)
		full, found := m.full.Get(bucket.Name)
		if !found || full.Before(now) {
			full = now
		}
		fullAt[i] = full.Add(interval)
		if late := fullAt[i].Sub(now) - time.Duration(bucket.Rule.Burst)*interval; late > 0 {
			wait = max(wait, late, time.Millisecond)
		}
	}
	if wait > 0 {
		return wait
	}
	for i, bucket := range buckets {
		m.full.Add(bucket.Name, fullAt[i])
	}
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
