package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/topology/topologytest"
)

// A bucket that was written under a clock an hour ahead counts as empty: its owner waits for one token, not for an hour.
func TestTakeMany_ClockStepsBack(t *testing.T) {
	t.Parallel()
	redis := newClocked(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	take := func(at time.Time) limit.Decision {
		t.Helper()
		redis.server.SetTime(at)
		d, err := limit.TakeMany(t.Context(), redis.client, []string{"one"}, redis_rate.PerMinute(50))
		if err != nil {
			t.Fatal(err)
		}
		return d[0]
	}
	if d := take(now.Add(time.Hour)); !d.Allowed {
		t.Fatalf("an hour ahead: %+v", d)
	}
	token := 1200 * time.Millisecond
	if d := take(now); d.Allowed || !near(d.RetryAfter, token) || !near(d.ResetAfter, time.Minute) {
		t.Errorf("back again: %+v", d)
	}
	if d := take(now.Add(token)); !d.Allowed || d.Remaining != 0 {
		t.Errorf("a token later: %+v", d)
	}
	if d := take(now.Add(token)); d.Allowed || !near(d.RetryAfter, token) {
		t.Errorf("a second request then: %+v", d)
	}
}

// The same on a Cluster, as after a failover to a node whose clock is behind.
func TestCluster_ClockStepsBack(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	limiter := onCluster(t, c, 1, generous, limit.Closed)[0]
	rule, name := redis_rate.PerSecond(2), uuid.NewString()
	ahead := time.Now().Add(time.Hour).Unix() - 1483228800 // seconds since 2017, as redis_rate counts
	if err := limiter.redis.Set(t.Context(), "rate:"+name, fmt.Sprint(ahead), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if d := limiter.take(t, name, rule); d.Allowed || d.RetryAfter > time.Second || d.ResetAfter > time.Second {
		t.Fatalf("%+v", d)
	}
	result, err := redis_rate.NewLimiter(limiter.redis).AllowN(t.Context(), name, rule, 0)
	if err != nil || result.ResetAfter > time.Second {
		t.Errorf("redis_rate finds the bucket as %+v, %v", result, err)
	}
}
