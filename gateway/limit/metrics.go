package limit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	allowed, refused, refusedFromMemory                   prometheus.Counter
	fallbackAllowed, fallbackRefused, fallbackUnavailable prometheus.Counter

	failures  prometheus.Counter
	batch     prometheus.Histogram
	roundTrip prometheus.Histogram
}

// newMetrics registers the metrics; degraded is called at every scrape.
func newMetrics(registry prometheus.Registerer, budget time.Duration, degraded func() float64) metrics {
	factory := promauto.With(registry)
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_gateway_limit_budget_seconds",
		Help: "How long one call to Redis may take before the fallback decides.",
	}).Set(budget.Seconds())
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_limit_degraded",
		Help: "1 while the circuit breaker of Redis is open and the fallback decides, else 0. Of a Redis Cluster, the share of " +
			"its nodes with an open breaker: the fallback decides for the keys on them.",
	}, degraded)
	decisions := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_limit_decisions_total",
		Help: "Rate limit decisions. refused_from_memory are refusals that cost no call to Redis. A rise of any fallback_ " +
			"decision means that Redis does not answer and the limit is kept per replica, or not at all.",
	}, []string{"decision"})
	return metrics{
		allowed:             decisions.WithLabelValues("allowed"),
		refused:             decisions.WithLabelValues("refused"),
		refusedFromMemory:   decisions.WithLabelValues("refused_from_memory"),
		fallbackAllowed:     decisions.WithLabelValues("fallback_allowed"),
		fallbackRefused:     decisions.WithLabelValues("fallback_refused"),
		fallbackUnavailable: decisions.WithLabelValues("fallback_unavailable"),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_limit_redis_failures_total",
			Help: "Calls to Redis that failed or took longer than the budget. A rise means that Redis is down, slow or cut off.",
		}),
		batch: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_gateway_limit_batch_size",
			Help:    "Decisions per call to Redis. It grows with load; a rise at the same load means that Redis is slower.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
		roundTrip: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_gateway_limit_redis_duration_seconds",
			Help:    "Time of one call to Redis. A rise towards the budget means that decisions will soon be made without Redis.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 11),
		}),
	}
}

// newBucketMetrics registers the number and the bound of the copies.
func newBucketMetrics(registry prometheus.Registerer, b *buckets, capacity int) {
	factory := promauto.With(registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_limit_buckets_held",
		Help: "Buckets of which this gateway has a copy. At intents_gateway_limit_buckets_limit, copies in use are dropped for others: " +
			"refusals cost calls to Redis then, and without Redis a key whose copy was dropped has a full bucket.",
	}, func() float64 { return float64(b.cache.EstimatedSize()) })
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_gateway_limit_buckets_limit",
		Help: "Buckets of which this gateway may have copies: GATEWAY_LIMIT_MEMORY.",
	}).Set(float64(capacity))
}

// countCall counts a call to Redis if it failed. Requests may share a call.
func (m metrics) countCall(err error) {
	if err != nil && !isBreakerOpen(err) {
		m.failures.Inc()
	}
}
