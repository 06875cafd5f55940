package tokenbucket_test

import (
	"testing"
	"time"

	"intents.internal/pkg/tokenbucket"
)

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
