package tokenbucket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/tokenbucket"
)

// A bucket has what is left of its burst, and the rest after an emission interval for each. A reply to a call says the same.
func TestRule_Quota(t *testing.T) {
	t.Parallel()
	rule, now := tokenbucket.Rule{Rate: 60, Burst: 5, Period: time.Minute}, time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		debt      time.Duration
		tokens    int
		remaining int
		wait      time.Duration
	}{
		{-time.Hour, 1, 5, 0},
		{0, 5, 5, 0},
		{time.Microsecond, 5, 4, time.Microsecond},
		{3 * time.Second, 2, 2, 0},
		{3 * time.Second, 3, 2, time.Second},
		{5 * time.Second, 1, 0, time.Second},
		{5 * time.Second, 5, 0, 5 * time.Second},
		{time.Hour, 1, 0, time.Second}, // which another rule charged
	} {
		full := min(max(0, c.debt), 5*time.Second)
		want := tokenbucket.Quota{Rule: rule, Remaining: c.remaining, RetryAfter: c.wait, ResetAfter: full}
		if diff := cmp.Diff(want, rule.Quota(now.Add(c.debt), c.tokens, now)); diff != "" {
			t.Errorf("debt %s, %d tokens (-want +got):\n%s", c.debt, c.tokens, diff)
		}
		number := full.Microseconds()
		if c.wait > 0 {
			number = -1 - number
		}
		if diff := cmp.Diff(want, rule.ParseQuota(number, c.tokens)); diff != "" {
			t.Errorf("%d on %d tokens (-want +got):\n%s", number, c.tokens, diff)
		}
	}
	none, unlimited := tokenbucket.Quota{}, tokenbucket.Rule{}
	if got, read := unlimited.Quota(now, 100, now), unlimited.ParseQuota(0, 100); got != none || read != none {
		t.Errorf("without a limit: %+v, read %+v", got, read)
	}
}

// A bucket gives its burst at once, then a token each emission interval; while it rejects, it stays as it is.
func TestQuota_Spend(t *testing.T) {
	t.Parallel()
	rule := tokenbucket.Rule{Rate: 60, Burst: 3, Period: time.Minute}
	start := time.Now()
	var tat time.Time
	for _, c := range []struct{ at, full, wait time.Duration }{
		{0, time.Second, 0},
		{0, 2 * time.Second, 0},
		{0, 3 * time.Second, 0},
		{0, 3 * time.Second, time.Second},
		{time.Second, 4 * time.Second, 0},
		{time.Second + time.Second/2, 4 * time.Second, time.Second / 2},
		{10 * time.Second, 11 * time.Second, 0},
	} {
		now := start.Add(c.at)
		quota := rule.Quota(tat, 1, now)
		if quota.RetryAfter == 0 {
			tat = quota.Spend(1, now)
		}
		if full := tat.Sub(start); full != c.full || quota.RetryAfter != c.wait || quota.ResetAfter != tat.Sub(now) {
			t.Errorf("after %s: full after %s and %+v, want %s and a wait of %s", c.at, full, quota, c.full, c.wait)
		}
	}
}
