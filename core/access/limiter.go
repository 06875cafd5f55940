package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"intents.internal/pkg/topology"
)

const (
	// avoidFor is how long Redis, or the node of a Cluster, is left alone after it failed, so that not every visitor waits for
	// it.
	avoidFor = time.Second
	// logEvery spaces the log lines of one outage.
	logEvery = 10 * time.Second
	// redisPrefix is what redis_rate puts before a bucket's name.
	redisPrefix = "rate:"
	// heldBuckets bounds the buckets in memory, about 300 bytes each. Whose bucket is pushed out has a full one.
	heldBuckets = 1 << 16
)

// limiter counts tries in Redis, and in this core's memory while Redis does not answer. It is safe for concurrent use.
type limiter struct {
	redis   redis.UniversalClient // nil without Redis
	shared  *redis_rate.Limiter   // nil without Redis
	own     *lru.Cache[string, *rate.Limiter]
	outages outages
	logged  atomic.Int64 // when the last line of an outage was written, in Unix nanoseconds
	log     *slog.Logger
	metrics limiterMetrics
}

func newLimiter(config Config, limits rules) (*limiter, error) {
	own, err := lru.New[string, *rate.Limiter](heldBuckets)
	if err != nil {
		return nil, err
	}
	l := &limiter{redis: config.Redis, own: own, log: config.Log, metrics: newLimiterMetrics(config.Metrics, limits)}
	if config.Redis != nil {
		l.shared = redis_rate.NewLimiter(topology.AtMostOnce{UniversalClient: config.Redis})
	}
	return l, nil
}

// spend takes one try out of the subject's bucket, or returns a *LimitedError and takes none.
func (l *limiter) spend(ctx context.Context, r rule, subject string) error {
	bucket, place := r.name+":"+subject, ""
	wait, err := l.spendShared(ctx, bucket, r.limit)
	if errors.Is(err, errNoRedis) {
		wait, err = l.spendOwn(bucket, r.limit), nil
		if l.shared != nil {
			place = "fallback_"
		}
	}
	if err != nil {
		return err
	}
	if wait > 0 {
		l.metrics.decisions.WithLabelValues(r.name, place+"refused").Inc()
		return &LimitedError{RetryAfter: wait}
	}
	l.metrics.decisions.WithLabelValues(r.name, place+"allowed").Inc()
	return nil
}

var errNoRedis = errors.New("no redis to count in")

// spendShared returns how long to wait, 0 for a try that is let through, and errNoRedis where Redis did not decide.
func (l *limiter) spendShared(ctx context.Context, bucket string, limit redis_rate.Limit) (time.Duration, error) {
	node, reachable := l.node(bucket)
	if !reachable {
		return 0, errNoRedis
	}
	result, err := l.shared.Allow(ctx, bucket, limit)
	if err != nil {
		return 0, l.failed(ctx, node, err)
	}
	if result.Allowed > 0 {
		return 0, nil
	}
	return max(result.RetryAfter, time.Millisecond), nil
}

// spendOwn returns how long to wait, 0 for a try that is let through.
func (l *limiter) spendOwn(bucket string, limit redis_rate.Limit) time.Duration {
	every := rate.Limit(float64(limit.Rate) / limit.Period.Seconds())
	held, found := l.own.Get(bucket)
	if !found {
		held = rate.NewLimiter(every, limit.Burst)
		if first, found, _ := l.own.PeekOrAdd(bucket, held); found {
			held = first
		}
	}
	now := time.Now()
	if held.AllowN(now, 1) {
		return 0
	}
	// A reservation would tell others who ask meanwhile to wait for it as well.
	return max(time.Duration((1-held.TokensAt(now))/float64(every)*float64(time.Second)), time.Millisecond)
}

// reset fills the subject's bucket. Where Redis fails the bucket stays as it is, which refills by itself.
func (l *limiter) reset(ctx context.Context, r rule, subject string) {
	bucket := r.name + ":" + subject
	l.own.Remove(bucket)
	node, reachable := l.node(bucket)
	if !reachable {
		return
	}
	if err := l.shared.Reset(ctx, bucket); err != nil {
		_ = l.failed(ctx, node, err) // noted there
	}
}

// refund puts one try back into the subject's bucket. One in Redis that would be full then stays one try short until it has
// refilled.
func (l *limiter) refund(ctx context.Context, r rule, subject string) {
	bucket := r.name + ":" + subject
	node, reachable := l.node(bucket)
	if !reachable {
		if own, found := l.own.Get(bucket); found {
			own.ReserveN(time.Now(), -1)
		}
		return
	}
	if _, err := l.shared.AllowN(ctx, bucket, r.limit, -1); err != nil {
		_ = l.failed(ctx, node, err) // noted there
	}
}

// node names the node that has the bucket, where there is a Cluster, and tells whether it is to be asked.
func (l *limiter) node(bucket string) (node string, reachable bool) {
	if l.shared == nil {
		return "", false
	}
	node = topology.Node(l.redis, redisPrefix+bucket)
	return node, !l.outages.on(node)
}

// failed notes a failure of Redis, or of one node, and returns errNoRedis; a visitor who has left is no failure.
func (l *limiter) failed(ctx context.Context, node string, cause error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("count a try: %w", err)
	}
	at := time.Now()
	l.outages.begin(node, at, avoidFor)
	l.metrics.failures.Inc()
	now, last := at.UnixNano(), l.logged.Load()
	if now-last >= int64(logEvery) && l.logged.CompareAndSwap(last, now) {
		l.log.LogAttrs(ctx, slog.LevelWarn, "limits without redis, counting in this core alone", slog.Any("error", cause))
	}
	return errNoRedis
}
