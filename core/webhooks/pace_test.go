package webhooks_test

import (
	"testing"
	"time"

	"intents.internal/core/webhooks"
)

// A burst is due at once, the rest at the average rate, and after a pause a burst is possible again.
func TestPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	var pace webhooks.Pace
	for n := range 2000 {
		want := now.Add(time.Duration(max(0, n-1000)) * 10 * time.Millisecond)
		if due := pace.Next(now); !due.Equal(want) {
			t.Fatalf("the delivery %d is due at %s, want %s", n, due, want)
		}
	}
	now = now.Add(10 * time.Second)
	if due := pace.Next(now); !due.Equal(now) {
		t.Errorf("at the average rate: due at %s", due)
	}
	now = now.Add(time.Hour)
	for n := range 1001 {
		if due := pace.Next(now); !due.Equal(now) {
			t.Fatalf("after a pause, the delivery %d is due at %s", n, due)
		}
	}
	if due := pace.Next(now); !due.After(now) {
		t.Error("the burst has no end")
	}
}
