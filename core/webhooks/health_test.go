package webhooks_test

import (
	"testing"
	"time"

	"intents.internal/core/webhooks"
)

// An endpoint is disabled by several failures in a row over five days: not by two that are a silent month apart, nor by few.
func TestEndpoint_RecordAttempt(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	failed := webhooks.Attempt{Outcome: webhooks.TimedOut}
	for name, c := range map[string]struct {
		// at are the times of failures; the last one's result is want.
		at   []time.Duration
		want webhooks.Reason
	}{
		"one":                         {[]time.Duration{0}, ""},
		"over five days":              {[]time.Duration{0, day, 2 * day, 3 * day, 5 * day}, webhooks.DisabledFailing},
		"over less":                   {[]time.Duration{0, 1, 2, 3, 4, day, 2 * day, 3 * day, 4 * day, 5*day - 1}, ""},
		"few over five days":          {[]time.Duration{0, 2 * day, 4 * day, 5 * day}, ""},
		"after a silent month":        {[]time.Duration{0, 30 * day}, ""},
		"many after a silent month":   {[]time.Duration{0, 1, 2, 3, 4, 5, 30 * day, 30*day + 1, 30*day + 2, 30*day + 3, 30*day + 4}, ""},
		"five days after that":        {[]time.Duration{0, 30 * day, 31 * day, 32 * day, 33 * day, 35 * day}, webhooks.DisabledFailing},
		"as a delivery is tried last": {[]time.Duration{0, 28 * time.Hour, 56 * time.Hour, 84 * time.Hour, 112 * time.Hour, 140 * time.Hour}, webhooks.DisabledFailing},
	} {
		start := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
		e := &webhooks.Endpoint{Enabled: true}
		for n, after := range c.at {
			failed.EndedAt = start.Add(after)
			got, want := e.RecordAttempt(failed), webhooks.Reason("")
			if n == len(c.at)-1 {
				want = c.want
			}
			if got != want || e.Enabled != (want == "") || e.DisabledReason != want {
				t.Errorf("%s: %q after %s, want %q; %+v", name, got, after, want, e)
			}
		}
		if c.want != "" && (e.Health != webhooks.Health{} || !e.UpdatedAt.Equal(failed.EndedAt)) {
			t.Errorf("%s: %+v", name, e)
		}
		e = &webhooks.Endpoint{Enabled: true}
		for _, after := range c.at {
			failed.EndedAt = start.Add(after)
			if reason := e.RecordAttempt(failed); reason != "" {
				t.Errorf("%s, with successes between: %q", name, reason)
			}
			if e.RecordAttempt(webhooks.Attempt{Outcome: webhooks.Succeeded, EndedAt: failed.EndedAt}); e.Health != (webhooks.Health{}) {
				t.Errorf("%s: %+v after a success", name, e.Health)
			}
		}
	}
	gone := &webhooks.Endpoint{Enabled: true}
	if got := gone.RecordAttempt(webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 410}); got != webhooks.DisabledGone || gone.Enabled {
		t.Errorf("410: %q, %+v", got, gone)
	}
}
