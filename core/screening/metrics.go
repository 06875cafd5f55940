package screening

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics name no address and no label.
type metrics struct {
	// clear, listed and test count checks by their stage.
	clear, listed, test map[Stage]prometheus.Counter
	failures, dropped   prometheus.Counter
	failing             prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer, s *Screen) *metrics {
	factory := promauto.With(registry)
	checks := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_core_screening_checks_total",
		Help: "Checks of accounts against the screening list, by what was asked for and whether one was listed; test is the address for tests. " +
			"listed at the stage chain means that a listed address moved money on chain, which somebody should look at.",
	}, []string{"stage", "outcome"})
	m := &metrics{
		clear: map[Stage]prometheus.Counter{}, listed: map[Stage]prometheus.Counter{}, test: map[Stage]prometheus.Counter{},
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_screening_reload_failures_total",
			Help: "Reloads of the screening list that took nothing, so that the list before stays in force. The log names the file and the line.",
		}),
		dropped: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_screening_hits_dropped_total",
			Help: "Hits of the screening list that were not recorded, because too many waited or the database refused them. What was asked for was refused all the same.",
		}),
		failing: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_screening_reload_failed",
			Help: "1 while the files of the screening list cannot be taken and the list before stays in force.",
		}),
	}
	for _, stage := range Stages {
		m.clear[stage] = checks.WithLabelValues(string(stage), "clear")
		m.listed[stage] = checks.WithLabelValues(string(stage), "listed")
		m.test[stage] = checks.WithLabelValues(string(stage), "test")
	}
	gauge := func(name, help string, read func() float64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "intents_core_screening_" + name, Help: help}, read)
	}
	gauge("entries", "Addresses of the screening list in force. A fall means that the operator's files have become smaller.",
		func() float64 { return float64(s.list.Load().Len()) })
	gauge("list_age_seconds", "Time since the oldest file of the screening list in force was written. An old list refuses people without cause, and serves others.",
		func() float64 { return time.Since(s.list.Load().Oldest()).Seconds() })
	gauge("list_max_age_seconds", "CORE_SCREENING_MAX_AGE, above which the list's age is an alert.", func() float64 { return s.MaxAge.Seconds() })
	return m
}

func (m *metrics) failed(failed bool) {
	m.failing.Set(0)
	if failed {
		m.failures.Inc()
		m.failing.Set(1)
	}
}
