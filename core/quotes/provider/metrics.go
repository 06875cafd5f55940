package provider

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
)

type metrics struct {
	requests    *prometheus.CounterVec
	failures    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	dropped     *prometheus.CounterVec
	submissions *prometheus.CounterVec
}

// submissionStatuses are the statuses of a signed order at a solver, see Provider.Submit and Provider.OrderFailed.
var submissionStatuses = []transfer.SubmissionStatus{
	transfer.SubmissionReceived, transfer.SubmissionRejected, transfer.SubmissionError, transfer.SubmissionFailed,
	Unanswered, transfer.SubmissionStatus(quote.ProviderUnavailable), transfer.SubmissionStatus(quote.ProviderRateLimited),
	transfer.SubmissionStatus(quote.ProviderRefused), transfer.SubmissionStatus(quote.ProviderInvalid),
}

// newMetrics registers the metrics; those of the endpoints begin at 0.
func newMetrics(registry prometheus.Registerer, endpoints []Endpoint) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_quote_requests_total",
			Help: "Times that a provider of quotes was to be asked, those included that were not sent because it was overloaded or had failed, " +
				"and without those that clients ended. It rises with the quotes that clients ask for.",
		}, []string{"environment", "provider"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_quote_failures_total",
			Help: "Times that a provider had no quote, by the code that clients see. A rise of PROVIDER_TIMEOUT or PROVIDER_UNAVAILABLE means " +
				"that the provider is slow or down; of PROVIDER_RATE_LIMITED, that it grants fewer requests than are made; of PROVIDER_REFUSED, " +
				"that a header or the URL in CORE_QUOTES_FILE is wrong; of PROVIDER_INVALID, that its API has changed or that it is not honest. " +
				"NO_QUOTE and EXACT_OUTPUT_UNSUPPORTED are normal answers.",
		}, []string{"environment", "provider", "code"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "intents_core_quote_seconds",
			Help:    "Time until a provider's answer is read. A rise means that the provider is slow, and clients wait for the slowest.",
			Buckets: []float64{.025, .05, .1, .25, .5, .75, 1, 1.5, 2},
		}, []string{"provider"}),
		dropped: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_quote_dropped_total",
			Help: "Quotes of a provider that were not handed out, by reason. A rise of malformed, other_route or amount means that the provider " +
				"does not answer what was asked; of contract, that it fills orders of another deployment than CORE_QUOTES_FILE says; of expired, " +
				"that its quotes hold for less than two blocks of the source chain and 15 s; of far_end, that they hold for over an hour, or end in milliseconds; of outlier, that they are more than ten times other prices; exclusive quotes are for one solver alone; duplicate and too_many lose nothing.",
		}, []string{"provider", "reason"}),
		submissions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_order_submissions_total",
			Help: "Signed orders that were handed to a solver, by the status that clients see. received are those that it took, and failed those of " +
				"them that it could not open or fill afterwards; all others were not taken. A rise of any but received means that the solver does not " +
				"fill orders that clients count on: it is down, or its settings refuse them.",
		}, []string{"environment", "provider", "status"}),
	}
	for _, e := range endpoints {
		m.requests.WithLabelValues(string(e.Environment), e.Name)
		m.seconds.WithLabelValues(e.Name)
		for _, code := range quote.FailureCodes {
			m.failures.WithLabelValues(string(e.Environment), e.Name, string(code))
		}
		for _, reason := range dropReasons {
			m.dropped.WithLabelValues(e.Name, string(reason))
		}
		if !e.Orders {
			continue
		}
		for _, status := range submissionStatuses {
			m.submissions.WithLabelValues(string(e.Environment), e.Name, string(status))
		}
	}
	return m
}

// countSubmission counts an order that was handed to the provider, or that has failed there.
func (p *Provider) countSubmission(status transfer.SubmissionStatus) {
	p.metrics.submissions.WithLabelValues(string(p.environment), p.Name, string(status)).Inc()
}
