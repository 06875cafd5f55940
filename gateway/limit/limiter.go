// Package limit decides whether a key has a request left, on buckets that all gateway replicas share in Redis
// as redis_rate keeps them.
//
// It owns the bounds on what Redis may cost: a budget of time, a breaker, and a stated policy for when Redis does not
// answer. It refuses to turn a fault of Redis into an error for the client, save under the policy "closed".
package limit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
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
	Redis *redis.Client
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
	redis    *redis.Client
	budget   time.Duration
	combiner combiner
	// returning lets one Return at a time call Redis, beside the batches.
	returning sync.Mutex
	breaker   *gobreaker.CircuitBreaker[string]
	fallback  Fallback
	copies    *buckets
	log       *slog.Logger
	sampler   sampler
	metrics   metrics
}

// New makes a limiter. It opens no connection until the first decision.
func New(o Options) *Limiter {
	l := &Limiter{
		redis:    o.Redis,
		budget:   o.Budget,
		fallback: o.Fallback,
		copies:   newBuckets(o.Capacity),
		log:      o.Log,
		sampler:  sampler{every: logEvery},
		metrics:  newMetrics(o.Metrics, o.Budget),
	}
	l.combiner.ask = l.ask
	l.breaker = gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       probeEvery,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		OnStateChange: func(_ string, _, to gobreaker.State) { l.metrics.degraded.Set(degraded(to)) },
	})
	return l
}

var errDegraded = errors.New("redis does not answer, the fallback decides")

// Ready is a readiness check that fails while requests are kept from Redis. It asks Redis nothing itself.
func (l *Limiter) Ready(context.Context) error {
	if l.breaker.State() != gobreaker.StateClosed {
		return errDegraded
	}
	return nil
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

// Take asks now for one request of the bucket name under the rule. The name is shared by all replicas. The only error is
// ErrUnavailable.
func (l *Limiter) Take(name string, rule redis_rate.Limit, now time.Time) (Decision, error) {
	return l.take(l.copies.of(name), rule, l.fallback, now)
}

func (l *Limiter) take(own *bucket, rule redis_rate.Limit, fallback Fallback, now time.Time) (Decision, error) {
	if d, certain := own.refusal(rule, now); certain {
		l.metrics.refusedFromMemory.Inc()
		return d, nil
	}
	d, err := l.combiner.decide(own, rule)
	switch {
	case err != nil:
		return l.withoutRedis(own, rule, fallback, err)
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

// ask lets Redis decide on a batch, in one call for each rule in it, most often one.
func (l *Limiter) ask(batch []*request) error {
	l.metrics.batch.Observe(float64(len(batch)))
	slices.SortStableFunc(batch, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.rule.Rate, b.rule.Rate), cmp.Compare(a.rule.Burst, b.rule.Burst), cmp.Compare(a.rule.Period, b.rule.Period))
	})
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].rule == batch[0].rule {
			n++
		}
		if err := l.askOne(batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// askOne is one call, for requests of one rule.
func (l *Limiter) askOne(batch []*request) error {
	rule := batch[0].rule
	keys := make([]string, len(batch))
	for i, r := range batch {
		keys[i] = r.bucket.key
	}
	asked := time.Now()
	reply, err := l.call(takeMany, keys, rule.Burst, rule.Rate, rule.Period.Seconds())
	if err != nil {
		return err
	}
	answered := time.Now()
	l.metrics.roundTrip.Observe(answered.Sub(asked).Seconds())
	if err := readReply(reply, rule, batch); err != nil {
		return err
	}
	for _, r := range batch {
		r.bucket.tell(r.decision, asked, answered)
	}
	return nil
}

// call runs a script within the budget, unless the breaker keeps it from Redis.
func (l *Limiter) call(script *redis.Script, keys []string, args ...any) (string, error) {
	return l.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), l.budget)
		defer cancel()
		return script.Run(ctx, l.redis, keys, args...).Text()
	})
}

func (l *Limiter) withoutRedis(own *bucket, rule redis_rate.Limit, fallback Fallback, cause error) (Decision, error) {
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
	d := own.take(rule, time.Now())
	if d.Allowed {
		l.metrics.fallbackAllowed.Inc()
	} else {
		l.metrics.fallbackRefused.Inc()
	}
	return d, nil
}
