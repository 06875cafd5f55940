package wire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/wire"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][]int{429: {5}, 503: {5, 6, 7}, 504: {5, 6, 7}} {
		got := map[int]bool{}
		for range 1000 {
			got[wire.RetryAfter(status, 5)] = true
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%d: %s", status, diff)
		}
	}
}
