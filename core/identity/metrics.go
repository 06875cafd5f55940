package identity

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/postgres"
)

type limiterMetrics struct {
	decisions *prometheus.CounterVec
	failures  prometheus.Counter
}

func newLimiterMetrics(registry prometheus.Registerer) limiterMetrics {
	factory := promauto.With(registry)
	return limiterMetrics{
		decisions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_access_decisions_total",
			Help: "Attempts to sign in, sign up, create a key, have a mail sent or record an intent in the console, and requests to /auth and /console, " +
				"by limit. A rise of refused means password guessing or a flood; " +
				"any fallback_ decision means that Redis does not answer and each core counts alone.",
		}, []string{"limit", "decision"}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_access_redis_failures_total",
			Help: "Calls to Redis for these limits that failed. A rise means that Redis is down, slow or cut off.",
		}),
	}
}

// create creates all counters of a limit, so that increase() sees the first decision.
func (m limiterMetrics) create(limit string) {
	for _, decision := range []string{"allowed", "refused", "fallback_allowed", "fallback_refused"} {
		m.decisions.WithLabelValues(limit, decision)
	}
}

// The ceremonies of WebAuthn, for the metrics.
const (
	ceremonyRegistration   = "registration"
	ceremonyAuthentication = "authentication"
)

type passkeyMetrics struct{ ceremonies *prometheus.CounterVec }

func newPasskeyMetrics(registry prometheus.Registerer) passkeyMetrics {
	m := passkeyMetrics{promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "intents_core_passkey_ceremonies_total",
		Help: "Registrations of passkeys and sign-ins or confirmations with one that were finished, by outcome. A rise of refused means forged " +
			"responses, or a changed CORE_PUBLIC_URL, which ends all passkeys; of sign_count, copies of authenticators.",
	}, []string{"ceremony", "outcome"})}
	for _, ceremony := range []string{ceremonyRegistration, ceremonyAuthentication} {
		for _, outcome := range []string{"done", "refused", "sign_count", "failed"} {
			m.ceremonies.WithLabelValues(ceremony, outcome)
		}
	}
	return m
}

func (m passkeyMetrics) count(ceremony string, err error) {
	outcome := "refused"
	switch {
	case err == nil:
		outcome = "done"
	case errors.Is(err, errSignCount):
		outcome = "sign_count"
	case errors.Is(err, ErrPasskeysOff), postgres.Unavailable(err):
		outcome = "failed"
	}
	m.ceremonies.WithLabelValues(ceremony, outcome).Inc()
}

type passwordMetrics struct {
	waiting prometheus.Gauge
	elapsed prometheus.Histogram
	refused prometheus.Counter
}

func newPasswordMetrics(registry prometheus.Registerer) passwordMetrics {
	factory := promauto.With(registry)
	return passwordMetrics{
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_passwords_waiting",
			Help: "Passwords being hashed or waiting for it; few are hashed at a time. A rise means many sign-ins, or a " +
				"flood.",
		}),
		elapsed: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_core_password_duration_seconds",
			Help:    "Time to hash or check a password, including the wait for it. Near 3 seconds, sign-ins are about to be refused.",
			Buckets: []float64{.02, .04, .08, .16, .32, .64, 1.28, 2, 3, 4},
		}),
		refused: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_passwords_refused_total",
			Help: "Passwords that waited too long to be hashed; their requests got 503. A rise means a flood, or too few processors.",
		}),
	}
}
