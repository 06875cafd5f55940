// Package limit decides whether a key has a request left, on buckets that all gateway replicas share in Redis
// as redis_rate keeps them.
//
// It owns the bounds on what Redis may cost: a budget of time, a breaker, and a stated policy for when Redis does not
// answer. It refuses to turn a fault of Redis into an error for the client, save under the policy "closed".
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
	// tripAfter failed batches in a row open the breaker: more than one slow moment of Redis. Nobody waits for more than
	// one of them, since whoever stands behind a batch that fails is decided without Redis too.
	tripAfter = 3
	// probeEvery is how long the open breaker waits before one call tries Redis again: 5 dials a second.
	probeEvery = 200 * time.Millisecond
	// logEvery spaces the log lines of one outage.
	logEvery = 10 * time.Second
)

// ErrUnavailable says that Redis did not answer and the policy is closed.
var ErrUnavailable = errors.New("the rate limiter does not answer")

// Decision is what became of one request.
type Decision struct {
	Allowed bool
	// Rule is the limit that was applied.
	Rule redis_rate.Limit
	// Remaining is how many requests would pass at this instant.
	Remaining int
	// RetryAfter is when the next request will pass; it means nothing where this one did.
	RetryAfter time.Duration
	// ResetAfter is when the bucket will be full.
	ResetAfter time.Duration
	// Remembered says that it is a refusal that Redis was not asked for, because it could have answered nothing else.
	Remembered bool
}

// Options are the limiter's settings; all must be set.
type Options struct {
	// Redis is the client of NewRedis.
	Redis redis.UniversalClient
	// Budget is how long one call to Redis may take, for all the requests that share it.
	Budget time.Duration
	// Fallback is the policy while Redis does not answer.
	Fallback Fallback
	// Capacity bounds the buckets whose copies are kept in memory, about 300 bytes each.
	Capacity int
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Limiter is safe for concurrent use.
type Limiter struct {
	shared   shared
	fallback Fallback
	copies   *buckets
	log      *slog.Logger
	sampler  telemetry.Sampler
	metrics  metrics
}

// shared is where the buckets of all replicas are: on one server, or on the nodes of a Cluster.
type shared interface {
	// decide takes one request from a bucket and notes the answer in the copy. After an error Redis has not decided.
	decide(span trace.Span, own *bucket, rule redis_rate.Limit) (Decision, error)
	// away is the share of the servers in use that requests are kept from, 0 to 1.
	away() float64
	close()
}

// New makes a limiter. It opens no connection until the first decision.
func New(o Options) *Limiter {
	l := &Limiter{
		fallback: o.Fallback,
		copies:   newBuckets(o.Capacity),
		log:      o.Log,
		sampler:  telemetry.Sampler{Every: logEvery},
	}
	l.metrics = newMetrics(o.Metrics, o.Budget, func() float64 { return l.shared.away() })
	watchMemory(o.Metrics, l.copies, o.Capacity)
	if nodes, is := o.Redis.(*redis.ClusterClient); is {
		l.shared = newCluster(nodes, o.Budget, l.metrics)
	} else {
		l.shared = newSingle(o.Redis, o.Budget, l.metrics)
	}
	return l
}

// newBreaker keeps requests from a server that has failed several times, but for a probe now and then.
func newBreaker() *gobreaker.CircuitBreaker[string] {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     probeEvery,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
	})
}

var errDegraded = errors.New("redis does not answer, the fallback decides")

// Ready is a readiness check that fails while all requests are kept from Redis. It asks Redis nothing itself.
func (l *Limiter) Ready(context.Context) error {
	if l.shared.away() == 1 {
		return errDegraded
	}
	return nil
}

// Close ends the memory's housekeeping. The limiter must not be in use any more; the Redis client stays open.
func (l *Limiter) Close() {
	l.copies.cache.StopAllGoroutines()
	l.shared.close()
}

// Take asks now for one request of the bucket name under the rule. The name is shared by all replicas. The only error is
// ErrUnavailable.
func (l *Limiter) Take(name string, rule redis_rate.Limit, now time.Time) (Decision, error) {
	return l.TakeIn(tracing.Noop, name, rule, now)
}

// TakeIn is Take for a request with a span, below which it shows where Redis is asked.
func (l *Limiter) TakeIn(span trace.Span, name string, rule redis_rate.Limit, now time.Time) (Decision, error) {
	own := l.copies.of(name)
	if d, certain := own.refusal(rule, now); certain {
		l.metrics.refusedFromMemory.Inc()
		return d, nil
	}
	asking := tracing.Start(span, "limit")
	d, err := l.shared.decide(asking, own, rule)
	tracing.End(asking, err, errorType(err))
	switch {
	case err != nil:
		return l.withoutRedis(own, rule, err)
	case d.Allowed:
		l.metrics.allowed.Inc()
	default:
		l.metrics.refused.Inc()
	}
	return d, nil
}

func (l *Limiter) withoutRedis(own *bucket, rule redis_rate.Limit, cause error) (Decision, error) {
	if !errors.Is(cause, gobreaker.ErrOpenState) && !errors.Is(cause, gobreaker.ErrTooManyRequests) {
		l.metrics.failures.Inc()
		if suppressed, due := l.sampler.Due(); due {
			l.log.Warn("rate limiter without redis", "policy", string(l.fallback), "error", cause, "suppressed", suppressed)
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
	d := own.take(rule, time.Now())
	if d.Allowed {
		l.metrics.fallbackAllowed.Inc()
	} else {
		l.metrics.fallbackRefused.Inc()
	}
	return d, nil
}
