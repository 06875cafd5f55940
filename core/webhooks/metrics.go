package webhooks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	attempts     *prometheus.CounterVec
	firstAttempt prometheus.Histogram
	backlog      prometheus.Gauge
	unattended   prometheus.Gauge
	disabled     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_webhook_attempts_total",
			Help: "Attempts to deliver an event to a webhook, by outcome; all but delivered failed. A rise of one receiver's failures is normal; " +
				"of connect or tls for many, this service's network or its certificate authorities are at fault. Sum it over cores.",
		}, []string{"outcome"}),
		firstAttempt: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_core_webhook_first_attempt_seconds",
			Help:    "Time from an event to the first attempt to deliver it. A rise means that dispatching or sending does not keep up.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		backlog: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_webhook_backlog_age_seconds",
			Help: "Time for which the oldest event waits, of enabled webhooks: for its delivery, or since an attempt became due, until that " +
				"has ended; 0 for none. A slow receiver with more events than it takes raises it for itself. Take the maximum over cores.",
		}),
		unattended: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_webhook_unattended_seconds",
			Help: "Time for which an event, or a webhook that is not failing and has something due, waits for this service: for its delivery, " +
				"for a core, or for the first of a core's slots; 0 for none. A rise means that dispatching or sending fails or does not keep up. " +
				"Take the maximum over cores.",
		}),
		disabled: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_webhook_disabled_total",
			Help: "Webhooks that this core has disabled, by reason: gone for an answer with 410, failing for five days with several failures and no success. " +
				"A rise for many accounts at once means that this service cannot reach them.",
		}, []string{"reason"}),
	}
	for _, outcome := range Outcomes {
		m.attempts.WithLabelValues(string(outcome))
	}
	for _, reason := range []Reason{DisabledGone, DisabledFailing} {
		m.disabled.WithLabelValues(string(reason))
	}
	return m
}

// observeFirstAttempt observes the time to the first attempt of an event. A retry, a replay and an event that an endpoint missed
// while it was disabled do not count: the delivery or the endpoint has changed since the event.
func (m *metrics) observeFirstAttempt(endpoint *Endpoint, due DueDelivery, now time.Time) {
	unchanged := due.UpdatedAt.Equal(due.CreatedAt) && !endpoint.UpdatedAt.After(due.Event.At)
	if due.Attempts == 0 && !due.Test && unchanged {
		m.firstAttempt.Observe(now.Sub(due.Event.At).Seconds())
	}
}
