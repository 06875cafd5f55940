// Package limit decides whether a key has a request left, on buckets that all gateway replicas share through
// redis_rate.
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
)

const (
	// tripAfter failures in a row open the breaker: more than one slow moment of Redis, and no more than are under way at
	// once, so that those who wait behind a hung Redis wait for one budget only.
	tripAfter = 3
	// probeEvery is how long the open breaker waits before one call tries Redis again: 5 dials a second.
	probeEvery = 200 * time.Millisecond
	// logEvery spaces the log lines of one outage.
	logEvery = 10 * time.Second
	// slotBudgets is how many budgets a request may wait for one of the connections to Redis.
	slotBudgets = 5
)

var errNoSlot = errors.New("all connections to redis are in use")

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
}

// Options are the limiter's settings; all must be set.
type Options struct {
	// Redis is the client of NewRedis.
	Redis *redis.Client
	// Budget is the longest a decision may wait for Redis.
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
	redis    *redis.Client
	shared   *redis_rate.Limiter
	budget   time.Duration
	breaker  *gobreaker.CircuitBreaker[*redis_rate.Result]
	slots    chan struct{}
	fallback Fallback
	copies   *buckets
	log      *slog.Logger
	sampler  sampler
	metrics  metrics
}

// New makes a limiter. It opens no connection until the first decision.
func New(o Options) *Limiter {
	l := &Limiter{
		redis:    o.Redis,
		shared:   redis_rate.NewLimiter(o.Redis),
		budget:   o.Budget,
		slots:    make(chan struct{}, o.Redis.Options().PoolSize),
		fallback: o.Fallback,
		copies:   newBuckets(o.Capacity),
		log:      o.Log,
		sampler:  sampler{every: logEvery},
		metrics:  newMetrics(o.Metrics),
	}
	l.breaker = gobreaker.NewCircuitBreaker[*redis_rate.Result](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       probeEvery,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		OnStateChange: func(_ string, _, to gobreaker.State) { l.metrics.degraded.Set(degraded(to)) },
	})
	return l
}

func degraded(state gobreaker.State) float64 {
	if state == gobreaker.StateClosed {
		return 0
	}
	return 1
}

// Close ends the memory's housekeeping. The limiter must not be in use any more; the Redis client stays open.
func (l *Limiter) Close() {
	l.copies.cache.StopAllGoroutines()
}

// Take asks for one request of the bucket name under the rule. The name is shared by all replicas. The only error is
// ErrUnavailable.
func (l *Limiter) Take(name string, rule redis_rate.Limit) (Decision, error) {
	return l.take(name, rule, l.fallback)
}

func (l *Limiter) take(name string, rule redis_rate.Limit, fallback Fallback) (Decision, error) {
	if d, certain := l.Refused(name, rule); certain {
		l.metrics.refusedFromMemory.Inc()
		return d, nil
	}
	d, err := l.ask(name, rule, (*Limiter).allow)
	switch {
	case err != nil:
		return l.withoutRedis(name, rule, fallback, err)
	case d.Allowed:
		l.metrics.allowed.Inc()
	default:
		l.metrics.refused.Inc()
	}
	return d, nil
}

// Refused tells, without asking Redis, whether a request of the bucket could only be refused now.
func (l *Limiter) Refused(name string, rule redis_rate.Limit) (Decision, bool) {
	held := l.copies.held(name)
	if held == nil {
		return Decision{}, false
	}
	return held.refusal(rule, time.Now())
}

// call is one of those that Redis is sent about a bucket. It is a method, so that passing one on costs no allocation.
type call func(*Limiter, context.Context, string, redis_rate.Limit) (*redis_rate.Result, error)

func (l *Limiter) allow(ctx context.Context, name string, rule redis_rate.Limit) (*redis_rate.Result, error) {
	return l.shared.Allow(ctx, name, rule)
}

// ask makes the call and notes what Redis says of the bucket. The wait for a slot is this replica's own rush and no
// fault of Redis, so the budget counts from there; should Redis hang, the calls under way open the breaker for those that
// wait.
func (l *Limiter) ask(name string, rule redis_rate.Limit, c call) (Decision, error) {
	if err := l.acquire(); err != nil {
		return Decision{}, err
	}
	defer func() { <-l.slots }()
	asked := time.Now()
	result, err := l.breaker.Execute(func() (*redis_rate.Result, error) {
		ctx, cancel := context.WithDeadline(context.Background(), asked.Add(l.budget))
		defer cancel()
		return c(l, ctx, name, rule)
	})
	if err != nil {
		return Decision{}, err
	}
	d := Decision{
		Allowed:    result.Allowed > 0,
		Rule:       rule,
		Remaining:  result.Remaining,
		RetryAfter: result.RetryAfter,
		ResetAfter: result.ResetAfter,
	}
	l.copies.of(name).tell(d, asked, time.Now())
	return d, nil
}

func (l *Limiter) acquire() error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(slotBudgets * l.budget)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errNoSlot
	}
}

func (l *Limiter) withoutRedis(name string, rule redis_rate.Limit, fallback Fallback, cause error) (Decision, error) {
	if !errors.Is(cause, gobreaker.ErrOpenState) && !errors.Is(cause, gobreaker.ErrTooManyRequests) {
		l.metrics.failures.Inc()
		if heldBack, due := l.sampler.due(); due {
			l.log.Warn("rate limiter without redis", "policy", string(fallback), "error", cause, "lines_held_back", heldBack)
		}
	}
	switch fallback {
	case Open:
		l.metrics.fallbackAllowed.Inc()
		return Decision{Allowed: true, Rule: rule, Remaining: rule.Burst}, nil
	case Closed:
		l.metrics.fallbackUnavailable.Inc()
		return Decision{}, ErrUnavailable
	case Local:
	}
	d := l.copies.of(name).take(rule, time.Now())
	if d.Allowed {
		l.metrics.fallbackAllowed.Inc()
	} else {
		l.metrics.fallbackRefused.Inc()
	}
	return d, nil
}
