package limit_test

import (
	"testing"
	"time"

	"intents.internal/gateway/limit"
)

// The memory for copies of buckets, of keys and of their accounts, shows how full it is, and how full it can be.
func TestLimiter_BucketMetrics(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, startRedis(t, true).URL, time.Second, limit.Local)
	for _, name := range []string{"a", "b", "a", "c"} {
		l.take(t, name, fiftyAMinute)
	}
	if held, most := l.metric(t, "intents_gateway_limit_buckets_held"), l.metric(t, "intents_gateway_limit_buckets_limit"); held != 6 || most != copies {
		t.Errorf("%v of %v buckets are held, want 6 of %d", held, most, copies)
	}
}
