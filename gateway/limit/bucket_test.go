package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
)

// One schedule of requests, decided by redis_rate and by the local bucket on one clock: both must say the same, and the
// copy must be certain of no refusal that redis_rate does not give.
func TestBucket_DecidesAsRedisRate(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer client.Close()
	shared := redis_rate.NewLimiter(client)
	random := rand.New(rand.NewPCG(1, 2))
	rules := []redis_rate.Limit{redis_rate.PerMinute(50), redis_rate.PerSecond(3), {Rate: 7, Burst: 7, Period: 10 * time.Second}}

	for i, rule := range rules {
		now := time.Unix(1_800_000_000, 0)
		var local, told limit.Request
		certain := 0
		for range 1000 {
			step := time.Duration(random.Int64N(int64(2 * rule.Period / time.Duration(rule.Rate)))).Truncate(time.Microsecond)
			if random.IntN(2) == 0 {
				step = 0 // a burst
			}
			now = now.Add(step)
			server.SetTime(now)
			server.FastForward(step)
			_, refused := told.CachedRefusal(rule, redis_rate.Limit{}, now)
			want, err := shared.Allow(t.Context(), string(rune('a'+i)), rule)
			if err != nil {
				t.Fatal(err)
			}
			got := local.TakeLocal(rule, redis_rate.Limit{}, now)
			if got.Allowed != (want.Allowed == 1) || got.Remaining != want.Remaining ||
				!near(got.ResetAfter, want.ResetAfter) || !got.Allowed && !near(got.RetryAfter, want.RetryAfter) {
				t.Fatalf("%v: the bucket says %+v, redis_rate %+v", rule, got, want)
			}
			if refused {
				certain++
				if want.Allowed == 1 {
					t.Fatalf("%v: the copy was certain of a refusal that redis_rate did not give", rule)
				}
			}
			told.Update(limit.Quota{ResetAfter: want.ResetAfter}, now.Add(-time.Microsecond))
		}
		t.Logf("%v: %d refusals were certain beforehand", rule, certain)
	}
}

// A limit may be high and its period long: their product is more nanoseconds than there are.
func TestBucket_HighLimitLongPeriod(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, rule := range []redis_rate.Limit{
		{Rate: 1 << 30, Burst: 1 << 30, Period: 366 * 24 * time.Hour}, {Rate: 200_000, Burst: 200_000, Period: 24 * time.Hour}, redis_rate.PerMinute(50),
	} {
		var b limit.Request
		first := b.TakeLocal(rule, redis_rate.Limit{}, now)
		if again := b.TakeLocal(rule, redis_rate.Limit{}, now); !first.Allowed || !again.Allowed || again.ResetAfter <= first.ResetAfter {
			t.Errorf("%v: %+v, then %+v", rule, first, again)
		}
	}
}

// near allows for the digits that the script keeps of its times.
func near(a, b time.Duration) bool { return (a - b).Abs() < 100*time.Microsecond }
