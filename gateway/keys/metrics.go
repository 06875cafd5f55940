package keys

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	hits, refusalHits, filtered, feedUnavailable, misses, rechecks prometheus.Counter
	lookUpsUsable, lookUpsRefused, lookUpsFailed                   prometheus.Counter

	changes, purges, pollsFailed, filtersFailed prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, v *Verifier, capacity int) metrics {
	factory := promauto.With(registry)
	verdicts := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_key_verdicts_total",
		Help: "Keys verified, by the source of the verdict. A rise of recheck means that the change feed is not followed; of filter " +
			"or refusal_cache, that a client tries unknown keys; of feed_unavailable, that core does not answer.",
	}, []string{"source"})
	lookUps := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_key_lookups_total",
		Help: "Keys looked up at core, by result. A rise of failed means that core does not answer and clients get 503.",
	}, []string{"result"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_key_feed_age_seconds",
		Help: "Time since the start of the last successful poll of the key change feed. Above 1, cached verdicts are looked up again.",
	}, func() float64 { return v.feedLag(v.now()).Seconds() })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_key_feed_waiting",
		Help: "Requests with a key that the filter of existing keys lacks, which wait for a poll of the change feed. A rise means that " +
			"a client tries unknown keys, or that core does not answer.",
	}, func() float64 { return float64(v.polls.waiting.Load()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_key_verdicts_held",
		Help: "Verdicts in the cache. At intents_gateway_key_verdicts_limit, keys in use are looked up at core again and again.",
	}, func() float64 { return float64(v.verdicts.EstimatedSize()) })
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_gateway_key_verdicts_limit",
		Help: "Verdicts that the cache may hold: GATEWAY_KEY_CACHE.",
	}).Set(float64(capacity))
	return metrics{
		hits:            verdicts.WithLabelValues("cache"),
		refusalHits:     verdicts.WithLabelValues("refusal_cache"),
		filtered:        verdicts.WithLabelValues("filter"),
		feedUnavailable: verdicts.WithLabelValues("feed_unavailable"),
		misses:          verdicts.WithLabelValues("core"),
		rechecks:        verdicts.WithLabelValues("recheck"),
		lookUpsUsable:   lookUps.WithLabelValues("usable"),
		lookUpsRefused:  lookUps.WithLabelValues("refused"),
		lookUpsFailed:   lookUps.WithLabelValues("failed"),
		changes: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_key_changes_total",
			Help: "Changed keys that the change feed reported.",
		}),
		purges: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_key_feed_purges_total",
			Help: "Times every verdict was dropped because changes may have been missed. A rise means outages longer than core keeps the changes.",
		}),
		filtersFailed: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_key_filter_failures_total",
			Help: "Times that the filter of existing keys could not be loaded from core. A rise means that unknown keys are looked up at core.",
		}),
		pollsFailed: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_key_feed_failures_total",
			Help: "Polls of the change feed that failed. A rise means that core does not answer.",
		}),
	}
}
