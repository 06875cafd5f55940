package telemetry_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/pkg/telemetry"
)

func TestCauseSampler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := telemetry.CauseSampler{Every: time.Second}
		down, slow := errors.New("connection refused"), errors.New("timeout")
		expect := func(err error, wantSuppressed int64, wantDue bool) {
			t.Helper()
			if suppressed, due := s.Due(err); suppressed != wantSuppressed || due != wantDue {
				t.Errorf("%v: %d, %t; want %d, %t", err, suppressed, due, wantSuppressed, wantDue)
			}
		}
		expect(fmt.Errorf("insert transfer 1: %w", down), 0, true)
		for n := range 300 {
			expect(fmt.Errorf("insert transfer %d: %w", n, down), 0, false)
		}
		expect(fmt.Errorf("list: %w: %w", slow, down), 0, true) // another cause
		time.Sleep(time.Second)
		expect(fmt.Errorf("list: %w", down), 300, true)
		expect(slow, 0, true)
		for n := range 100 { // causes without end share a line
			s.Due(fmt.Errorf("cause %d", n))
		}
		expect(errors.New("cause 200"), 0, false)
	})
}
