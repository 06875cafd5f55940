package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/postgres"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	underWay prometheus.Gauge
	defects  prometheus.Counter
	outdated prometheus.Counter
	readings prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_requests_total",
			Help: "Requests ended, by route and status; gone where the gateway left first, cut where the answer broke off. A rise of " +
				"503 means that the database is failing; of 500, a defect of core.",
		}, []string{"route", "status"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:                           "intents_core_request_duration_seconds",
			Help:                           "Time to answer a request to its end. A rise on all routes points at the database.",
			Buckets:                        prometheus.ExponentialBuckets(0.0005, 2, 14),
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 100,
		}, []string{"route"}),
		underWay: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_requests_under_way",
			Help: "Requests being answered. A rise without more traffic means that the database has become slow.",
		}),
		defects: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_defects_total",
			Help: "Requests that failed for a reason nobody foresaw, panics included. Each is a defect and has an error line in the log.",
		}),
		outdated: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_previous_secret_requests_total",
			Help: "Requests that bore CORE_GATEWAY_SECRET_PREVIOUS. While it rises, gateways still use that secret, and fail if it is dropped.",
		}),
		readings: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_key_feed_readings_total",
			Help: "Readings of the database for gateways that wait to hear of changed keys: ten a second at most, however many wait.",
		}),
	}
}

// count notes how a request ended. cause is why it failed, nil if it did not; cut and left tell that its answer broke off
// and that nobody waits for it any more.
func (m *metrics) count(route string, status int, elapsed time.Duration, cause error, cut, left bool) {
	ended := strconv.Itoa(status)
	switch {
	case left && (cut || status >= http.StatusInternalServerError):
		ended = "gone"
	case cut:
		ended = "cut"
	}
	m.requests.WithLabelValues(route, ended).Inc()
	m.duration.WithLabelValues(route).Observe(elapsed.Seconds())
	if !left && (status == http.StatusInternalServerError || cut && !postgres.Unavailable(cause)) {
		m.defects.Inc()
	}
}
