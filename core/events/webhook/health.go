package webhook

import "time"

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
