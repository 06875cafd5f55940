package edge

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// outcome is the result of a request; it is a metric label, so the set is closed.
type outcome int

const (
	outcomeOK outcome = iota
	outcomeClientError
	outcomeCoreError
	outcomeMalformedRequest
	outcomeNoKey
	outcomeMalformedKey
	outcomeUnknownKey
	outcomeRefusedKey
	outcomeKeysUnavailable
	outcomeNetworkRefused
	outcomeScopeRefused
	outcomeMalformedToken
	outcomeExpiredToken
	outcomeTokenRefused
	outcomeOriginRefused
	outcomePreflight
	outcomeRateLimited
	outcomeAccountRateLimited
	outcomeLimiterUnavailable
	outcomeNotFound
	outcomeMethodNotAllowed
	outcomeTooLarge
	outcomeMediaType
	outcomeInvalid
	outcomeBatchTooLarge
	outcomeChainRefused
	outcomeUnhealthy
	outcomeOverloaded
	outcomeAccountOverloaded
	outcomeTooManyPolls
	outcomeCoreUnreachable
	outcomeCoreTimeout
	outcomeCoreBroken
	outcomeClientGone
	outcomePanic
	outcomes
)

var outcomeNames = [outcomes]string{
	outcomeOK:                 "ok",
	outcomeClientError:        "client_error",
	outcomeCoreError:          "core_error",
	outcomeMalformedRequest:   "malformed_request",
	outcomeNoKey:              "no_key",
	outcomeMalformedKey:       "malformed_key",
	outcomeUnknownKey:         "unknown_key",
	outcomeRefusedKey:         "refused_key",
	outcomeKeysUnavailable:    "keys_unavailable",
	outcomeNetworkRefused:     "network_refused",
	outcomeScopeRefused:       "scope_refused",
	outcomeMalformedToken:     "malformed_token",
	outcomeExpiredToken:       "expired_token",
	outcomeTokenRefused:       "token_refused",
	outcomeOriginRefused:      "origin_refused",
	outcomePreflight:          "preflight",
	outcomeRateLimited:        "rate_limited",
	outcomeAccountRateLimited: "account_rate_limited",
	outcomeLimiterUnavailable: "limiter_unavailable",
	outcomeNotFound:           "not_found",
	outcomeMethodNotAllowed:   "method_not_allowed",
	outcomeTooLarge:           "too_large",
	outcomeMediaType:          "media_type",
	outcomeInvalid:            "invalid_request",
	outcomeBatchTooLarge:      "batch_too_large",
	outcomeChainRefused:       "chain_refused",
	outcomeUnhealthy:          "unhealthy",
	outcomeOverloaded:         "overloaded",
	outcomeAccountOverloaded:  "account_overloaded",
	outcomeTooManyPolls:       "too_many_polls",
	outcomeCoreUnreachable:    "core_unreachable",
	outcomeCoreTimeout:        "core_timeout",
	outcomeCoreBroken:         "core_broken",
	outcomeClientGone:         "client_gone",
	outcomePanic:              "panic",
}

func (o outcome) String() string { return outcomeNames[o] }

// outcomeOf returns the outcome of a response from core.
func outcomeOf(status int) outcome {
	switch {
	case status >= 500:
		return outcomeCoreError
	case status >= 400:
		return outcomeClientError
	default:
		return outcomeOK
	}
}

// metrics are indexed by route and outcome, so that counting a request needs no map look-up.
type metrics struct {
	requests  [][outcomes]prometheus.Counter
	durations []prometheus.Observer

	keyStage, limitStage, coreStage prometheus.Observer

	unreadable *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	factory := promauto.With(registry)
	requests := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_requests_total",
		Help: "Requests answered. A rise of core_unreachable, core_timeout, core_broken, core_error or keys_unavailable means " +
			"trouble in core; of panic, a defect of the gateway; the other outcomes are the clients' doing.",
	}, []string{"route", "outcome"})
	durations := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "intents_gateway_request_duration_seconds",
		Help: "Time from a request's arrival to the first byte of its response, without the time that it waited for events.",
		// From the duration of a rejection to core's deadline.
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route"})
	stages := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "intents_gateway_stage_duration_seconds",
		Help:    "Time a request waited for a verdict on its key, for the rate limit, and for core.",
		Buckets: []float64{.00001, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .1, .5, 1, 5, 10},
	}, []string{"stage"})

	m := metrics{
		requests:   make([][outcomes]prometheus.Counter, len(routes)),
		durations:  make([]prometheus.Observer, len(routes)),
		keyStage:   stages.WithLabelValues("key"),
		limitStage: stages.WithLabelValues("limit"),
		coreStage:  stages.WithLabelValues("core"),
	}
	m.unreadable = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_forwarded_unreadable_total",
		Help: "Headers of proxies in GATEWAY_TRUSTED_PROXIES that could not be read, so that the proxy's address counted as the client's, or http " +
			"as the scheme. A rise means that clients share the limits of an address: correct what the proxy sends.",
	}, []string{"header"})
	for _, header := range []string{headerForwardedFor, headerForwardedProto} {
		m.unreadable.WithLabelValues(header)
	}
	for _, r := range routes {
		m.durations[r.number] = durations.WithLabelValues(r.pattern)
		for o := range outcomes {
			m.requests[r.number][o] = requests.WithLabelValues(r.pattern, o.String())
		}
	}
	return m
}

func (m *metrics) count(r *route, o outcome, elapsed time.Duration) {
	m.requests[r.number][o].Inc()
	m.durations[r.number].Observe(elapsed.Seconds())
}
