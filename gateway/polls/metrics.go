package polls

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct{ gaps, failures prometheus.Counter }

func newMetrics(registry prometheus.Registerer, p *Polls) metrics {
	factory := promauto.With(registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_gateway_long_polls",
		Help: "Requests for events that wait for one. Near intents_gateway_long_polls_limit, new ones are about to be refused.",
	}, func() float64 { return float64(p.open()) })
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_gateway_long_polls_limit",
		Help: "Requests for events that may wait at once: GATEWAY_MAX_POLLS.",
	}).Set(float64(p.max))
	return metrics{
		gaps: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_wakeup_gaps_total",
			Help: "Times that every long poll asked core again because wake-ups may have been missed. A rise means that cores restart or do not answer, " +
				"or that long polls are rare.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_gateway_wakeup_failures_total",
			Help: "Questions for the accounts with new events that core did not answer. While it rises, long polls are answered late.",
		}),
	}
}
