package webhooks

import (
	"math/rand/v2"
	"slices"
	"time"
)

// schedule is the delay before each attempt, counted from the end of the previous attempt.
var schedule = [...]time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
	24 * time.Hour,
}

const (
	// MaxAttempts is the number of attempts in the schedule.
	MaxAttempts = len(schedule)
	// jitter is the fraction by which each delay varies, so that endpoints that failed together are not retried together.
	jitter = 0.2
	// maxRetryAfter bounds the Retry-After of a receiver.
	maxRetryAfter = 24 * time.Hour
)

// Status is the state of a delivery.
type Status string

// The statuses.
const (
	// Pending means that the first attempt is due now or later.
	Pending Status = "pending"
	// Retrying means that an attempt has failed and the next one is due now or later. It is stored as Pending.
	Retrying Status = "retrying"
	// Delivered means that the response was 2xx.
	Delivered Status = "delivered"
	// Failed means that no attempt is left.
	Failed Status = "failed"
)

// Statuses returns the statuses in the order in which a delivery has them.
func Statuses() []Status { return []Status{Pending, Retrying, Delivered, Failed} }

// ParseStatus parses a status exactly.
func ParseStatus(text string) (Status, bool) {
	status := Status(text)
	return status, slices.Contains(Statuses(), status)
}

// Outcome is the result of an attempt, from a closed set for metrics.
type Outcome string

// The outcomes. Only Succeeded is a success.
const (
	Succeeded Outcome = "delivered"
	// OtherStatus is a response that is neither 2xx nor 3xx.
	OtherStatus Outcome = "status"
	// Redirected is a 3xx response, which is not followed.
	Redirected Outcome = "redirect"
	TimedOut   Outcome = "timeout"
	// NotConnected is a name that does not resolve or an address that does not accept the connection.
	NotConnected Outcome = "connect"
	// BadTLS is a failed TLS handshake or an invalid certificate.
	BadTLS Outcome = "tls"
	// AddressRefused is an address that must not be called.
	AddressRefused Outcome = "address_not_allowed"
	// TooLarge is a response whose header is over the bound.
	TooLarge Outcome = "too_large"
	// Malformed is a response that is not HTTP, a broken connection, or any other failure.
	Malformed Outcome = "other"
	// EventGone means that no request was made, because the event is no longer stored.
	EventGone Outcome = "event_gone"
)

// Outcomes are all outcomes of attempts.
var Outcomes = []Outcome{Succeeded, OtherStatus, Redirected, TimedOut, NotConnected, BadTLS, AddressRefused, TooLarge, Malformed}

// Text returns the outcome's text for the endpoint's owner, empty for a success.
func (o Outcome) Text() string {
	return map[Outcome]string{
		OtherStatus:    "The answer was not 2xx.",
		Redirected:     "The answer was a redirect, which is not followed.",
		TimedOut:       "There was no answer in time: 5 seconds to connect, 15 seconds in all.",
		NotConnected:   "No connection could be made.",
		BadTLS:         "The TLS handshake failed or the certificate is not valid.",
		AddressRefused: "The address or the port must not be called.",
		TooLarge:       "The answer's header is too large.",
		Malformed:      "The connection broke or the answer was not HTTP.",
		EventGone:      "The event is not kept any more.",
	}[o]
}

// Attempt is a finished attempt.
type Attempt struct {
	Outcome Outcome
	// ResponseStatus is 0 if there was no response.
	ResponseStatus int
	// ResponseBody is the beginning of the response's body as text, of at most maxBodyBytes, or maxSuccessBytes of a success.
	ResponseBody string
	// Duration is the time from the start of the request to the end of what was read of the response.
	Duration time.Duration
	// RetryAfter is the Retry-After of a 429 or 503, otherwise 0.
	RetryAfter time.Duration
	// EndedAt is by the database's clock.
	EndedAt time.Time
}

// The status codes of responses that say more than success or failure (RFC 9110, RFC 6585).
const (
	statusGone               = 410
	statusTooManyRequests    = 429
	statusServiceUnavailable = 503
)

// NewAnswer returns an attempt with a response. retryAfter is its Retry-After, 0 for none, of which at most a day counts.
func NewAnswer(status int, retryAfter time.Duration, endedAt time.Time) Attempt {
	a := Attempt{Outcome: OtherStatus, ResponseStatus: status, EndedAt: endedAt}
	switch {
	case status >= 200 && status < 300:
		a.Outcome = Succeeded
	case status >= 300 && status < 400:
		a.Outcome = Redirected
	case status == statusTooManyRequests || status == statusServiceUnavailable:
		a.RetryAfter = min(retryAfter, maxRetryAfter)
	}
	return a
}

// Gone reports whether the receiver wants no more events (410 Gone).
func (a Attempt) Gone() bool { return a.ResponseStatus == statusGone }

// After returns a delivery's status after this attempt and, if it is Retrying, when the next attempt is due. attempts is the
// number of previous attempts.
func (a Attempt) After(attempts int) (status Status, next time.Time) {
	switch {
	case a.Outcome == Succeeded:
		return Delivered, time.Time{}
	case attempts+1 >= MaxAttempts || a.Outcome == EventGone:
		return Failed, time.Time{}
	}
	return Retrying, a.EndedAt.Add(max(withJitter(schedule[attempts+1]), a.RetryAfter))
}

// withJitter returns d, randomly shorter or longer by up to the jitter.
func withJitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*rand.Float64())) //nolint:gosec // it spreads load and is no secret
}

const (
	// FailuresDisable is how long an endpoint may fail without a success before it is disabled.
	FailuresDisable = 5 * 24 * time.Hour
	// minFailures is how many failures there must be in that time: one a day. The first five attempts of a single delivery, which
	// take three hours, are so many.
	minFailures = 5
	// maxFailureGap is the time after which another failure starts a new period: for so long nothing was tried. It exceeds the
	// longest delay before an attempt, which is 24 hours and the jitter.
	maxFailureGap = 48 * time.Hour
)

// Health is what an endpoint's attempts since its last success say about it. The zero value is a healthy endpoint.
type Health struct {
	// FailingSince is the time of the first failure of the present period, nil after a success.
	FailingSince *time.Time
	// Failures counts the failures of the period.
	Failures int
	// LastFailedAt is the time of the last failure, nil if it is not known.
	LastFailedAt *time.Time
}

// RecordAttempt applies an attempt to the endpoint's health. It disables the endpoint and returns the reason after a 410, and after
// at least minFailures failures without a success over FailuresDisable or longer; otherwise it returns "".
func (e *Endpoint) RecordAttempt(a Attempt) Reason {
	if a.Outcome == Succeeded {
		e.Health = Health{}
		return ""
	}
	h := &e.Health
	if h.FailingSince == nil || h.LastFailedAt != nil && a.EndedAt.Sub(*h.LastFailedAt) > maxFailureGap {
		*h = Health{FailingSince: &a.EndedAt}
	}
	h.Failures++
	if h.LastFailedAt == nil || a.EndedAt.After(*h.LastFailedAt) {
		h.LastFailedAt = &a.EndedAt
	}
	reason := Reason("")
	switch {
	case a.Gone():
		reason = DisabledGone
	case h.Failures >= minFailures && a.EndedAt.Sub(*h.FailingSince) >= FailuresDisable:
		reason = DisabledFailing
	default:
		return ""
	}
	e.Enabled, e.DisabledReason, e.Health, e.UpdatedAt = false, reason, Health{}, a.EndedAt
	return reason
}
