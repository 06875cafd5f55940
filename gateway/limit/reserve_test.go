package limit_test

import (
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/embedded"
)

// threeAnHour gives back nothing during a test.
var threeAnHour = redis_rate.PerHour(3)

func TestWhatIsReturnedCanBeTakenAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *embedded.Redis) {
		t.Helper()
		l, name := newLimiter(t, r.URL, generous, limit.Closed), uuid.NewString()
		for range 20 { // with nothing else taken, and so nothing left in Redis
			if d := l.Reserve(name, threeAnHour); !d.Allowed || d.Remaining != 2 {
				t.Fatalf("reserve: %+v", d)
			}
			l.Return(name, threeAnHour)
		}
		for range 3 {
			l.Reserve(name, threeAnHour)
		}
		if d := l.Reserve(name, threeAnHour); d.Allowed {
			t.Fatalf("a fourth: %+v", d)
		}
		l.Return(name, threeAnHour)
		if d := l.Reserve(name, threeAnHour); !d.Allowed || d.Remaining != 0 {
			t.Errorf("after one was returned: %+v", d)
		}
		if d := l.Reserve(name, threeAnHour); d.Allowed {
			t.Errorf("one was returned, two were taken: %+v", d)
		}
	})
}

func TestReservationsAreHeldToTheLimitWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, policy := range []limit.Fallback{limit.Local, limit.Open, limit.Closed} {
		l, name := newLimiter(t, "redis://127.0.0.1:1/0", 50*time.Millisecond, policy), uuid.NewString()
		for range 3 {
			l.Reserve(name, threeAnHour)
		}
		refused := l.Reserve(name, threeAnHour)
		l.Return(name, threeAnHour)
		if again := l.Reserve(name, threeAnHour); refused.Allowed || !again.Allowed {
			t.Errorf("%s: a fourth: %+v, after a return: %+v", policy, refused, again)
		}
	}
}

// A Redis that comes and goes, or forgets, must not give a replica the budget anew.
func TestReservationsAreHeldToTheLimitWhateverRedisSays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *embedded.Redis) {
		t.Helper()
		l, name := newLimiter(t, r.URL, generous, limit.Closed), uuid.NewString()
		allowed := 0
		for range 10 {
			if l.Reserve(name, threeAnHour).Allowed {
				allowed++
			}
			if err := l.redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if allowed != 3 {
			t.Errorf("%d of 10 were allowed", allowed)
		}
	})
}
