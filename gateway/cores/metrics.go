package cores

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of the cores in the set.
type metrics struct {
	registry prometheus.Registerer
	ejected  *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{registry: registry, ejected: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_core_ejections_total",
		Help: "Times a core was ejected because it could not be reached, closed a response early, timed out or failed its probe. " +
			"A rise means that the core, or the network to it, fails.",
	}, []string{"core"})}
	registry.MustRegister(m.ejected)
	return m
}

// add registers a core's metrics and returns the function that unregisters them.
func (m metrics) add(c *Core) (remove func()) {
	c.ejected = m.ejected.WithLabelValues(c.Address)
	labels := prometheus.Labels{"core": c.Address}
	isUp := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "intents_gateway_core_up",
		Help:        "1 while requests are sent to the core, 0 while it is ejected. While all cores are at 0, requests are sent to all of them.",
		ConstLabels: labels,
	}, func() float64 {
		if c.Up() {
			return 1
		}
		return 0
	})
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "intents_gateway_core_requests_in_flight",
		Help:        "Requests in flight to the core. A rise without more traffic means that the core has become slow.",
		ConstLabels: labels,
	}, func() float64 { return float64(c.inFlight.Load()) })
	m.registry.MustRegister(isUp, inFlight)
	return func() {
		m.registry.Unregister(isUp)
		m.registry.Unregister(inFlight)
		m.ejected.DeleteLabelValues(c.Address)
	}
}
