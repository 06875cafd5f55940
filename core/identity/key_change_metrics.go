package identity

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func newKeyChangeLag(registry prometheus.Registerer) prometheus.Histogram {
	return promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "intents_core_key_change_lag_seconds",
		Help:    "Age of the oldest change in a response of the key change feed. A rise means that revoked keys stay valid for longer.",
		Buckets: []float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 30},
	})
}
