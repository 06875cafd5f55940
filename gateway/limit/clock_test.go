package limit_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
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
	ahead := time.Now().Add(time.Hour).Unix() - tokenbucket.Epoch
	tat := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(ahead)))
	if err := limiter.redis.HSet(t.Context(), hashOf(name), tokenbucket.Field(name), tat).Err(); err != nil {
		t.Fatal(err)
	}
	if d := limiter.take(t, name, rule); d.Allowed || d.RetryAfter > time.Second || d.ResetAfter > time.Second {
		t.Fatalf("%+v", d)
	}
	if charged := limiter.charged(t, name, rule); charged > 2 {
		t.Errorf("the bucket lacks %d requests", charged)
	}
}
