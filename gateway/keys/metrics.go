package keys

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	hits, unknownHits, misses, rechecks, overBudget, crowdedOut prometheus.Counter
	lookUpsUsable, lookUpsUnknown, lookUpsFailed                prometheus.Counter

	changes, purges, pollsFailed, filtersFailed prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, v *Verifier, capacity int) metrics {
	factory := promauto.With(registry)
	verdicts := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_key_verdicts_total",
		Help: "Keys judged, by where the verdict came from. A rise of recheck means that the change feed is not followed; " +
			"of unknown_cache, over_budget or crowded_out, that somebody is trying keys; with crowded_out, keys made a moment ago get 503 meanwhile.",
	}, []string{"source"})
	lookUps := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_key_lookups_total",
		Help: "Keys looked up at core, by result. A rise of failed means that core does not answer and clients get 503.",
	}, []string{"result"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_key_feed_age_seconds",
		Help: "Time since every change of a key was last known. Above 1, cached verdicts do not count.",
	}, func() float64 { return v.age(v.now()).Seconds() })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_key_verdicts_held",
		Help: "Verdicts in the cache. At gateway_key_verdicts_limit, keys in use are looked up at core again and again.",
	}, func() float64 { return float64(v.verdicts.EstimatedSize()) })
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "gateway_key_verdicts_limit",
		Help: "Verdicts that the cache may hold: GATEWAY_KEY_CACHE.",
	}).Set(float64(capacity))
	return metrics{
		hits:           verdicts.WithLabelValues("cache"),
		unknownHits:    verdicts.WithLabelValues("unknown_cache"),
		misses:         verdicts.WithLabelValues("core"),
		rechecks:       verdicts.WithLabelValues("recheck"),
		overBudget:     verdicts.WithLabelValues("over_budget"),
		crowdedOut:     verdicts.WithLabelValues("crowded_out"),
		lookUpsUsable:  lookUps.WithLabelValues("usable"),
		lookUpsUnknown: lookUps.WithLabelValues("unknown"),
		lookUpsFailed:  lookUps.WithLabelValues("failed"),
		changes: factory.NewCounter(prometheus.CounterOpts{
			Name: "gateway_key_changes_total",
			Help: "Changed keys the change feed has told of.",
		}),
		purges: factory.NewCounter(prometheus.CounterOpts{
			Name: "gateway_key_feed_purges_total",
			Help: "Times every verdict was dropped because changes may have been missed. A rise means outages longer than core's memory.",
		}),
		filtersFailed: factory.NewCounter(prometheus.CounterOpts{
			Name: "gateway_key_filter_failures_total",
			Help: "Times that the filter of the keys there are could not be got from core. A rise means that a flood of unknown keys would " +
				"crowd out keys that are new to this gateway.",
		}),
		pollsFailed: factory.NewCounter(prometheus.CounterOpts{
			Name: "gateway_key_feed_failures_total",
			Help: "Polls of the change feed that failed. A rise means that core does not answer.",
		}),
	}
}
