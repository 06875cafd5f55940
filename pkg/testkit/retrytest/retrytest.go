// Package retrytest compares values of Retry-After, which have jitter.
package retrytest

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/wire"
)

// Least returns least if value is one of those that wire.RetryAfter makes of it for this status, else value.
func Least(status int, value, least string) string {
	got, err := strconv.Atoi(value)
	if err != nil {
		return value
	}
	if seconds, err := strconv.Atoi(least); err == nil && status >= 500 && seconds <= got && got <= seconds+wire.RetryJitter {
		return least
	}
	return value
}

// HasJitter fails the test unless the values of many responses, of which each asks for a second at least, are all that can be.
func HasJitter(tb testing.TB, value func() string) {
	tb.Helper()
	got := map[string]bool{}
	for range 60 { // one of three values is missing once in 10^10 times
		got[value()] = true
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, slices.Sorted(maps.Keys(got))); diff != "" {
		tb.Errorf("Retry-After (-want +got):\n%s", diff)
	}
}
