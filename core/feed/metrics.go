package feed

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type storeMetrics struct {
	events prometheus.Counter
	delay  prometheus.Histogram
	lag    prometheus.Gauge
}

func newStoreMetrics(registry prometheus.Registerer) *storeMetrics {
	factory := promauto.With(registry)
	return &storeMetrics{
		events: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_feed_events_total",
			Help: "Events that this core has given their position in the feed. Sum it over cores; it rises as fast as the transitions do, and " +
				"no rise while those rise means that readers and webhooks get nothing.",
		}),
		delay: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "intents_core_feed_delay_seconds",
			Help: "Time from an event until it has its position in the feed and can be read there. A rise means that clients hear of changes later; " +
				"after an upgrade the events of before count with their age.",
			Buckets: []float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 30},
		}),
		lag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_feed_backlog_age_seconds",
			Help: "Age of the oldest event that has no position in the feed; 0 when none waits. A rise means that readers and webhooks hear of " +
				"nothing. Take the maximum over cores; a core that cannot read it keeps the last value.",
		}),
	}
}
