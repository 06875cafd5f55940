// Package limit decides whether a key and its account have a request left. The token buckets are in Redis, in the form of
// pkg/tokenbucket, and all gateway replicas share them.
//
// It owns the bounds on calls to Redis: a time budget, a circuit breaker, and the fallback while Redis does not respond. A fault
// of Redis is not an error for the client, except under the fallback "closed".
package limit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tokenbucket"
)

const (
	// tripAfter is how many consecutive failed batches open the breaker. A request waits for at most one of them: requests behind
	// a failed batch are also decided without Redis.
	tripAfter = 3
	// probeInterval is how long the open breaker waits before it lets one call through to Redis: 5 dials a second.
	probeInterval = 200 * time.Millisecond
	// logEvery is the minimum time between two log lines of one outage.
	logEvery = 10 * time.Second
)

// ErrUnavailable means that Redis did not respond and the fallback is closed.
var ErrUnavailable = errors.New("the rate limiter does not answer and GATEWAY_LIMIT_FALLBACK is closed")

// Decision is the result of one Take.
type Decision struct {
	Allowed bool
	// Quota is the key's.
	tokenbucket.Quota
	// Account is the account's; its Rule is zero if the account has no limit.
	Account tokenbucket.Quota
	// Cached is set if the request was rejected without a call to Redis, which could only have rejected it.
	Cached bool
}

// decide allows a request that neither bucket refuses.
func decide(key, account tokenbucket.Quota) Decision {
	return Decision{Allowed: key.RetryAfter == 0 && account.RetryAfter == 0, Quota: key, Account: account}
}

// ByAccount reports whether a rejected request waits for the account's limit.
func (d *Decision) ByAccount() bool { return d.Account.RetryAfter > d.RetryAfter }

// Wait is the time until a rejected request will be admitted.
func (d *Decision) Wait() time.Duration { return max(d.RetryAfter, d.Account.RetryAfter) }

// Options are the limiter's settings; all must be set.
type Options struct {
	// Redis is the client of NewRedis.
	Redis redis.UniversalClient
	// Budget bounds one call to Redis, which a batch of requests shares.
	Budget time.Duration
	// Fallback decides while Redis does not respond.
	Fallback Fallback
	// Capacity bounds the copies of buckets, of keys and of accounts, about 300 bytes each.
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

// store holds the buckets of all replicas, on one server or on the nodes of a Cluster.
type store interface {
	// take takes the request's tokens from its buckets and updates their copies. An error means that Redis has not decided.
	take(r request) (Decision, error)
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

// newBreaker returns the circuit breaker of a server. It opens after several failures, and then lets one probe through every
// probeInterval.
func newBreaker() *gobreaker.CircuitBreaker[string] {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
	})
}

var errDegraded = errors.New("redis fails or does not answer, GATEWAY_LIMIT_FALLBACK decides")

// Ready is a readiness check that fails while the breaker lets no call through to Redis. It makes no call itself.
func (l *Limiter) Ready(context.Context) error {
	if l.store.degraded() == 1 {
		return errDegraded
	}
	return nil
}

// Close stops the background work of the caches. The limiter must not be used after Close; the Redis client stays open.
func (l *Limiter) Close() {
	l.buckets.cache.StopAllGoroutines()
	l.store.close()
}

// Take takes one token from the bucket of a key and cost tokens from the bucket of its account, or none from either. The cost must be
// at least 1 and at most the account's burst, which is never reached otherwise. All replicas share the buckets. The refusals are the
// key's. The only error is ErrUnavailable.
func (l *Limiter) Take(key, account tokenbucket.Bucket, cost int, refusals *Refusals, now time.Time) (Decision, error) {
	r, d, refused := l.cachedRefusal(key, account, cost, refusals, now)
	if refused {
		return d, nil
	}
	d, err := l.store.take(r)
	switch {
	case err != nil:
		return l.takeWithoutRedis(r, err)
	case d.Allowed:
		l.metrics.allowed.Inc()
	default:
		l.metrics.refused.Inc()
	}
	return d, nil
}

// CachedRefusal returns the decision of Take on a request of one token if it needs no call to Redis, which could only refuse the request.
// Such a request would be refused at any cost.
func (l *Limiter) CachedRefusal(key, account tokenbucket.Bucket, refusals *Refusals, now time.Time) (d Decision, refused bool) {
	_, d, refused = l.cachedRefusal(key, account, 1, refusals, now)
	return d, refused
}

// cachedRefusal returns the decision on a request that Redis could only refuse, or else the request.
func (l *Limiter) cachedRefusal(key, account tokenbucket.Bucket, cost int, refusals *Refusals, now time.Time) (r request, d Decision, refused bool) {
	if d, refused = refusals.take(cost, now); refused {
		l.metrics.refusedFromMemory.Inc()
		return request{}, d, true
	}
	r = request{key: l.buckets.get(key.Name), account: l.buckets.get(account.Name), rules: rules{key.Rule, account.Rule, cost}}
	if d, refused = r.cachedRefusal(cost, now); refused {
		last := r // a copy, so that a request that passes stays on the stack
		refusals.last.Store(&last)
		l.metrics.refusedFromMemory.Inc()
	}
	return r, d, refused
}

// full is the quota of an unused bucket.
func full(rule tokenbucket.Rule) tokenbucket.Quota {
	return tokenbucket.Quota{Rule: rule, Remaining: rule.Burst}
}

// isBreakerOpen reports whether the breaker blocked a call to Redis.
func isBreakerOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}

// takeWithoutRedis decides by the fallback.
func (l *Limiter) takeWithoutRedis(r request, cause error) (Decision, error) {
	if !isBreakerOpen(cause) {
		if suppressed, due := l.sampler.Due(); due {
			l.log.Warn("rate limiter without redis", "fallback", string(l.fallback), "error", cause, "suppressed", suppressed)
		}
	}
	switch l.fallback {
	case Open:
		l.metrics.fallbackAllowed.Inc()
		return decide(full(r.rules.key), full(r.rules.account)), nil
	case Closed:
		l.metrics.fallbackUnavailable.Inc()
		return Decision{}, ErrUnavailable
	case Local:
	}
	d := r.takeLocal(time.Now())
	if d.Allowed {
		l.metrics.fallbackAllowed.Inc()
	} else {
		l.metrics.fallbackRefused.Inc()
	}
	return d, nil
}
