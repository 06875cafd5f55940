package route

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
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_requests_total",
			Help: "Finished requests, by route and status: gone when the gateway closed the connection first, cut when the response was closed " +
				"early. A rise of 503 means that the database fails; of 500, a defect of core.",
		}, []string{"route", "status"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "intents_core_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its response. A rise on all routes points at the database.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"route"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_requests_in_flight",
			Help: "Requests in flight. A rise without more traffic means that the database has become slow.",
		}),
		defects: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_defects_total",
			Help: "Requests that failed with an unexpected error or a panic. Each is a defect of core and has an error line in the log.",
		}),
		outdated: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_previous_secret_requests_total",
			Help: "Requests authenticated by CORE_GATEWAY_SECRET_PREVIOUS. While it rises, gateways still use that secret, and fail if it is removed.",
		}),
	}
}

// count counts a finished request. cause is the error, nil for none; aborted means that the response is incomplete, clientClosed
// that the gateway closed the connection first.
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
