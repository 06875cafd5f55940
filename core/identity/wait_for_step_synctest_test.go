package identity //nolint:testpackage // the wait has no exported name

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever an answer took, it comes after a whole number of steps, unless nobody waits for it any more.
func TestWaitForStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]time.Duration{
			0: answerStep, time.Microsecond: answerStep, answerStep - 1: answerStep, answerStep: 2 * answerStep, answerStep + 1: 2 * answerStep,
		} {
			began := time.Now()
			time.Sleep(took)
			waitForStep(t.Context(), began)
			if got := time.Since(began); got != want {
				t.Errorf("after %s it waits until %s, not %s", took, got, want)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if waitForStep(gone, began); time.Since(began) != 0 {
			t.Error("it waits for nobody")
		}
	})
}
