package mail

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	attempts *prometheus.CounterVec
	backlog  prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_mail_attempts_total",
			Help: "Mails taken from the outbox, by outcome: sent, nothing (no account has the address), failed (tried again), refused (by the " +
				"recipient's server, for good), dropped (given up). A rise of failed or dropped means that the server of CORE_SMTP_URL does not " +
				"take mail; of nothing, that somebody tries addresses. Sum it over cores.",
		}, []string{"outcome"}),
		backlog: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_mail_backlog_age_seconds",
			Help: "Time for which the oldest mail waits to be sent, 0 for none. A rise means that the server of CORE_SMTP_URL does not take mail. " +
				"Take the maximum over cores.",
		}),
	}
	for _, outcome := range []string{"sent", "nothing", "failed", "refused", "dropped"} {
		m.attempts.WithLabelValues(outcome)
	}
	return m
}

func (m *metrics) count(outcome string) { m.attempts.WithLabelValues(outcome).Inc() }
