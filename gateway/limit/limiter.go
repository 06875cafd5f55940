// Package limit decides whether a key has a request left, on token buckets that all gateway replicas share in Redis, in
// redis_rate's format.
//
// It owns the bounds on what Redis may cost: a time budget, a circuit breaker, and the fallback for when Redis does not
// answer. A fault of Redis is no error for the client, except under the fallback "closed".
package limit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
)

const (
	// tripAfter is how many failed batches in a row open the breaker. One request waits for one of them at most: those that
	// wait behind a failed batch are decided without Redis too.
	tripAfter = 3
	// probeInterval is how long the open breaker waits before it lets one call through to Redis: 5 dials a second.
	probeInterval = 200 * time.Millisecond
	// logEvery is the least time between two log lines of one outage.
	logEvery = 10 * time.Second
)

// ErrUnavailable says that Redis did not answer and the fallback is closed.
var ErrUnavailable = errors.New("the rate limiter does not answer and GATEWAY_LIMIT_FALLBACK is closed")

// Decision is the result of one Take.
type Decision struct {
	Allowed bool
	// Rule is the limit that was applied.
	Rule redis_rate.Limit
	// Remaining is how many more requests would pass now.
	Remaining int
	// RetryAfter is the time until the next request will pass; it has no meaning where this one did.
	RetryAfter time.Duration
	// ResetAfter is the time until the bucket will be full.
	ResetAfter time.Duration
	// Cached marks a refusal without a call to Redis, which could only have refused.
	Cached bool
}

// Options are the limiter's settings; all must be set.
type Options struct {
	// Redis is the client of NewRedis.
	Redis redis.UniversalClient
	// Budget bounds one call to Redis, which a batch of requests shares.
	Budget time.Duration
	// Fallback decides while Redis does not answer.
	Fallback Fallback
	// Capacity bounds the copies of buckets, about 300 bytes each.
	Capacity int
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Limiter is safe for concurrent use.
type Limiter struct {
	store    store
	fallback Fallback
	buckets  *buckets
	log      *slog.Logger
	sampler  telemetry.Sampler
	metrics  metrics
}

// store holds the buckets of all replicas: on one server, or on the nodes of a Cluster.
type store interface {
	// take takes one token from a bucket and updates its copy. After an error Redis has not decided.
	take(span trace.Span, b *bucket, rule redis_rate.Limit) (Decision, error)
	// degraded is the share of the servers in use whose breaker is not closed, 0 to 1.
	degraded() float64
	close()
}

// New makes a limiter. It opens no connection until the first Take.
func New(o Options) *Limiter {
	l := &Limiter{
		fallback: o.Fallback,
		buckets:  newBuckets(o.Capacity),
		log:      o.Log,
		sampler:  telemetry.Sampler{Every: logEvery},
	}
	l.metrics = newMetrics(o.Metrics, o.Budget, func() float64 { return l.store.degraded() })
	newBucketMetrics(o.Metrics, l.buckets, o.Capacity)
	if client, ok := o.Redis.(*redis.ClusterClient); ok {
		l.store = newCluster(client, o.Budget, l.metrics)
	} else {
		l.store = newSingle(o.Redis, o.Budget, l.metrics)
	}
	return l
}

// newBreaker keeps calls from a server that failed several times, except for a probe every probeInterval.
func newBreaker() *gobreaker.CircuitBreaker[string] {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
	})
}

var errDegraded = errors.New("redis does not answer, GATEWAY_LIMIT_FALLBACK decides")

// Ready is a readiness check that fails while no call is let through to Redis. It makes no call itself.
func (l *Limiter) Ready(context.Context) error {
	if l.store.degraded() == 1 {
		return errDegraded
	}
	return nil
}

// Close stops the housekeeping of the caches. The limiter must not be in use any more; the Redis client stays open.
func (l *Limiter) Close() {
	l.buckets.cache.StopAllGoroutines()
	l.store.close()
}

// Take takes one token from the bucket name under the rule. All replicas share the bucket. The wait for Redis is a span below
// the given one, which may be tracing.Noop. The only error is ErrUnavailable.
func (l *Limiter) Take(span trace.Span, name string, rule redis_rate.Limit, now time.Time) (Decision, error) {
	b := l.buckets.get(name)
	if d, ok := b.cachedRefusal(rule, now); ok {
		l.metrics.refusedFromMemory.Inc()
		return d, nil
	}
	wait := tracing.Start(span, "limit")
	d, err := l.store.take(wait, b, rule)
	tracing.End(wait, err, errorType(err))
	switch {
	case err != nil:
		return l.takeWithoutRedis(b, rule, err)
	case d.Allowed:
		l.metrics.allowed.Inc()
	default:
		l.metrics.refused.Inc()
	}
	return d, nil
}

// takeWithoutRedis decides by the fallback.
func (l *Limiter) takeWithoutRedis(b *bucket, rule redis_rate.Limit, cause error) (Decision, error) {
	if !isBreakerOpen(cause) {
		if suppressed, due := l.sampler.Due(); due {
			l.log.Warn("rate limiter without redis", "fallback", string(l.fallback), "error", cause, "suppressed", suppressed)
		}
	}
	switch l.fallback {
	case Open:
		l.metrics.fallbackAllowed.Inc()
		return Decision{Allowed: true, Rule: rule, Remaining: rule.Burst}, nil
	case Closed:
		l.metrics.fallbackUnavailable.Inc()
		return Decision{}, ErrUnavailable
	case Local:
	}
	d := b.take(rule, time.Now())
	if d.Allowed {
		l.metrics.fallbackAllowed.Inc()
	} else {
		l.metrics.fallbackRefused.Inc()
	}
	return d, nil
}
