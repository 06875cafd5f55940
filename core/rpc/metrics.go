package rpc

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	errors   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	factory  promauto.Factory
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		factory: factory,
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_rpc_requests_total",
			Help: "JSON-RPC calls to a chain's node, each of a batch counted. A rise costs money where the provider bills calls; it comes " +
				"with reported transactions, with reorganizations and with more cores.",
		}, []string{"chain", "host", "method"}),
		errors: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_rpc_errors_total",
			Help: "JSON-RPC calls that failed, by reason. A rise of rate means that requestsPerSecond in CORE_RPC_FILE is over what the " +
				"provider grants; of timeout, transport or malformed, that the provider is down; of missing, that it lags or has pruned; " +
				"range and reverted are normal answers; after size and batch the calls were sent again in smaller requests.",
		}, []string{"chain", "host", "method", "reason"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "intents_core_rpc_request_seconds",
			Help:    "Time of one HTTP request to a chain's node, a whole batch. A rise means that the provider is slow.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"chain", "host"}),
	}
}

// registerAvailable adds the gauge of a provider, which is read when the metrics are.
func (m *metrics) registerAvailable(p *Provider) {
	m.factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_core_rpc_available",
		Help: "1 while a chain's node is asked; 0 while it is switched off for its rate limit, or serves another chain. A chain whose " +
			"nodes are all 0 is not followed.",
		ConstLabels: prometheus.Labels{"chain": p.chain, "host": p.label},
	}, func() float64 {
		if _, wrong, _ := p.verified.state(); wrong || p.health.paused() > 0 {
			return 0
		}
		return 1
	})
}
