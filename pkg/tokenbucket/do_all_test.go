package tokenbucket_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/tokenbucket"
)

// Calls in one round trip reply as they do one by one, also on a server that does not know the script.
func TestDoAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		for _, when := range []string{"the script is unknown", "it is known"} {
			calls := make([]tokenbucket.Call, 3)
			for n := range calls {
				calls[n].Begin(tokenbucket.Rule{Rate: n + 1, Burst: n + 1, Period: time.Hour}, tokenbucket.Rule{})
				field := tokenbucket.Field("key:" + uuid.NewString())
				for range 3 {
					calls[n].Add(field, nil)
				}
			}
			tokenbucket.DoAll(t.Context(), c.client, calls)
			for n := range calls {
				reply, err := calls[n].Reply()
				if err != nil || len(reply) != 6 {
					t.Fatalf("%s: call %d: %v, %v", when, n, reply, err)
				}
				allowed := []bool{reply[0] >= 0, reply[2] >= 0, reply[4] >= 0}
				if want := []bool{true, n >= 1, n >= 2}; !slices.Equal(allowed, want) {
					t.Errorf("%s: call %d allows %v, want %v", when, n, allowed, want)
				}
			}
		}
	})
}
