package limit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
)

// On one recorded schedule, with the clock in the test's hand, batches decide what redis_rate decides call by call, and
// each goes on from buckets that the other filled.
func TestTakeMany_DecidesAsRedisRate(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	ours, theirs := newClocked(t), newClocked(t)
	rules := []redis_rate.Limit{redis_rate.PerMinute(50), redis_rate.PerSecond(3), {Rate: 7, Burst: 20, Period: time.Hour}}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	admitted := 0
	for round := range 600 {
		now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))).Truncate(time.Microsecond))
		ours.server.SetTime(now)
		theirs.server.SetTime(now)
		if round == 300 {
			ours, theirs = theirs, ours
		}
		rule := rules[random.IntN(len(rules))]
		names := make([]string, 1+random.IntN(20))
		for i := range names {
			names[i] = fmt.Sprintf("%s of %d", rule, random.IntN(5))
		}
		slices.Sort(names)
		got, err := limit.TakeMany(t.Context(), ours.client, names, rule)
		if err != nil {
			t.Fatal(err)
		}
		limiter := redis_rate.NewLimiter(theirs.client)
		for i, name := range names {
			want, err := limiter.Allow(t.Context(), name, rule)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differs(got[i], want); diff != "" {
				t.Fatalf("round %d, %s: %s\n got %+v\nwant %+v", round, name, diff, got[i], want)
			}
			admitted += want.Allowed
		}
	}
	if admitted < 500 {
		t.Errorf("only %d requests of the schedule pass, so it shows little", admitted)
	}
}

// differs says in what a decision is not redis_rate's. Times are in whole microseconds here; the number left may round to
// its neighbour there, where its quotient of doubles falls just short of a whole.
func differs(got limit.Decision, want *redis_rate.Result) string {
	switch left := got.Remaining - want.Remaining; {
	case got.Allowed != (want.Allowed == 1):
		return "another decision"
	case !near(got.ResetAfter, want.ResetAfter):
		return "another ResetAfter"
	case !got.Allowed && !near(got.RetryAfter, want.RetryAfter):
		return "another RetryAfter"
	case left < 0 || left > 1:
		return "another number left"
	default:
		return ""
	}
}

type clocked struct {
	server *miniredis.Miniredis
	client *redis.Client
}

func newClocked(t *testing.T) clocked {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	return clocked{server, client}
}
