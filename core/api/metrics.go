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
	inFlight prometheus.Gauge
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
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
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

// count counts a finished request. cause is the error, nil for none; aborted means that the response is incomplete, clientClosed that
// the gateway closed the connection first.
func (m *metrics) count(route string, status int, elapsed time.Duration, cause error, aborted, clientClosed bool) {
	label := strconv.Itoa(status)
	switch {
	case clientClosed && (aborted || status >= http.StatusInternalServerError):
		label = "gone"
	case aborted:
		label = "cut"
	}
	m.requests.WithLabelValues(route, label).Inc()
	m.duration.WithLabelValues(route).Observe(elapsed.Seconds())
	if !clientClosed && (status == http.StatusInternalServerError || aborted && !postgres.Unavailable(cause)) {
		m.defects.Inc()
	}
}
