package tokenbucket_test

import (
	"testing"
	"time"

	"intents.internal/pkg/tokenbucket"
)

// A bucket with a debt has what is left of its burst, and the rest after an emission interval for each.
func TestRule_Left(t *testing.T) {
	t.Parallel()
	rule := tokenbucket.Rule{Rate: 60, Burst: 5, Period: time.Minute}
	for _, c := range []struct {
		debt time.Duration
		n    int
		left int
		wait time.Duration
	}{
		{0, 1, 5, 0},
		{0, 5, 5, 0},
		{time.Nanosecond, 5, 4, time.Nanosecond},
		{3 * time.Second, 2, 2, 0},
		{3 * time.Second, 3, 2, time.Second},
		{5 * time.Second, 1, 0, time.Second},
		{5 * time.Second, 5, 0, 5 * time.Second},
		{6 * time.Second, 1, 0, 2 * time.Second},
	} {
		if left, wait := rule.Left(c.debt, c.n); left != c.left || wait != c.wait {
			t.Errorf("debt %s: %d left and wait %s for %d, want %d and %s", c.debt, left, wait, c.n, c.left, c.wait)
		}
	}
	if left, wait := (tokenbucket.Rule{}).Left(0, 100); left != 0 || wait != 0 {
		t.Errorf("without a limit: %d left, wait %s", left, wait)
	}
}

// A bucket gives its burst at once, then a token each emission interval; while it rejects, it stays as it is.
func TestRule_Spend(t *testing.T) {
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
		var wait time.Duration
		tat, wait = rule.Spend(tat, start.Add(c.at))
		if full := tat.Sub(start); full != c.full || wait != c.wait {
			t.Errorf("after %s: full after %s and wait %s, want %s and %s", c.at, full, wait, c.full, c.wait)
		}
	}
}
