package usage

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	sent, failed, refused, dropped prometheus.Counter
	waiting                        prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer, backlog int) metrics {
	factory := promauto.With(registry)
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_gateway_usage_waiting_limit",
		Help: "Counts of a key and minute that may wait to be reported: GATEWAY_USAGE_BACKLOG. The oldest are dropped beyond it.",
	}).Set(float64(backlog))
	reports := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_usage_reports_total",
		Help: "Usage reports to core, by result. failed ones are sent again: a rise means that core does not answer. refused " +
			"ones are lost: any means that core and gateway do not agree on what a report is.",
	}, []string{"result"})
	return metrics{
		sent:    reports.WithLabelValues("sent"),
		failed:  reports.WithLabelValues("failed"),
		refused: reports.WithLabelValues("refused"),
		dropped: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_usage_dropped_total",
			Help: "Counts of a key and minute that were not reported to core, because more waited than the backlog holds or core " +
				"refused them. A rise means that core was unreachable for too long; usage charts lack these.",
		}),
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_gateway_usage_waiting",
			Help: "Counts of a key and minute that wait to be reported: at most two for each key in use, or core does not answer.",
		}),
	}
}
