package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/topology"
)

const (
	// cooldown is how long a Redis node is not called after a failure, so that only one client a second waits for its timeout.
	cooldown = time.Second
	// logEvery is the minimum time between two log lines of failures.
	logEvery = 10 * time.Second
	// memoryBuckets bounds the buckets of one limiter in memory.
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
	client  redis.UniversalClient // nil without Redis
	memory  *tokenbucket.Memory
	tripped sync.Map // of time.Time, the end of the cooldown, by node of a Cluster or ""
	logs    telemetry.Sampler
	log     *slog.Logger
	metrics limiterMetrics
}

func newLimiter(config Config) *limiter {
	return &limiter{
		client: config.Redis, memory: tokenbucket.NewMemory(memoryBuckets), logs: telemetry.Sampler{Every: logEvery},
		log: config.Log, metrics: newLimiterMetrics(config.Metrics),
	}
}

// alone returns a limiter of this core alone, with memory of its own: a flood of its subjects evicts no other limit's buckets.
func (l *limiter) alone() *limiter {
	return &limiter{memory: tokenbucket.NewMemory(memoryBuckets), metrics: l.metrics}
}

// limit is one of the Limits. Its name is the prefix of the names of its buckets.
type limit struct {
	*limiter
	name string
	rule tokenbucket.Rule
}

// limit returns a limit of n tries a period.
func (l *limiter) limit(name string, n int, period time.Duration) limit {
	l.metrics.create(name)
	return limit{l, name, tokenbucket.Per(n, period)}
}

func (l limit) bucket(subject string) tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: l.name + ":" + subject, Rule: l.rule}
}

// take takes one token from the subject's bucket, or returns a *LimitedError and takes none.
func (l limit) take(ctx context.Context, subject string) error {
	bucket := l.bucket(subject)
	return l.takeAll(ctx, l.name, tokenbucket.OneKey(bucket.Name), func() (wait time.Duration, err error) {
		return tokenbucket.TakeOne(ctx, l.client, bucket)
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
		wait, err = l.memory.Take(buckets...), nil
		if l.client != nil {
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
	bucket := l.bucket(subject)
	l.memory.Reset(bucket.Name)
	_ = l.call(ctx, tokenbucket.OneKey(bucket.Name), func() error { return tokenbucket.ResetOne(ctx, l.client, bucket.Name) }) // call has logged it
}

// refund returns one token to the subject's bucket. A bucket in Redis is unchanged if Redis fails after it was asked.
func (l limit) refund(ctx context.Context, subject string) {
	bucket := l.bucket(subject)
	err := l.call(ctx, tokenbucket.OneKey(bucket.Name), func() error { return tokenbucket.RefundOne(ctx, l.client, bucket) })
	if errors.Is(err, errNoRedis) {
		l.memory.Refund(bucket)
	}
}

// call runs a command on a key in Redis. It returns errNoRedis if Redis is unavailable, or the error of ctx. After a failure the
// node of the key, "" without a Cluster, cools down. A client that disconnected is not a failure.
func (l *limiter) call(ctx context.Context, key string, command func() error) error {
	if l.client == nil {
		return errNoRedis
	}
	node := topology.Node(l.client, key)
	if until, tripped := l.tripped.Load(node); tripped && !time.Now().After(until.(time.Time)) {
		return errNoRedis
	}
	cause := command()
	if cause == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("count a try: %w", err)
	}
	l.tripped.Store(node, time.Now().Add(cooldown))
	l.metrics.failures.Inc()
	if _, due := l.logs.Due(); due {
		l.log.LogAttrs(ctx, slog.LevelWarn, "redis of CORE_REDIS_URL failed, counting tries in this core alone", slog.Any("error", cause))
	}
	return errNoRedis
}
