package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/tokenbucket"
)

// A bucket without Redis has the tokens that it should have, counted in quarters, whose times are whole nanoseconds; a number of
// Redis's reply is read as the same quota; and a copy is certain of no refusal that Redis would not give.
func TestBucket(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, rule := range []tokenbucket.Rule{tokenbucket.Per(50, time.Minute), tokenbucket.Per(4, time.Second), {Rate: 7, Burst: 20, Period: 7 * time.Minute}} {
		quarter := rule.Period / time.Duration(4*rule.Rate)
		now, quarters, certain := time.Unix(1_800_000_000, 0), 4*rule.Burst, 0
		var local, told limit.Request
		for range 1000 {
			if random.IntN(2) == 0 { // else a burst
				passed := random.IntN(10)
				now = now.Add(time.Duration(passed) * quarter)
				quarters = min(4*rule.Burst, quarters+passed)
			}
			_, refused := told.CachedRefusal(rule, another, now)
			want := tokenbucket.Quota{Rule: rule}
			allowed := quarters >= 4
			if allowed {
				quarters -= 4
				want.Remaining = quarters / 4
			} else {
				want.RetryAfter = time.Duration(4-quarters) * quarter
			}
			want.ResetAfter = time.Duration(4*rule.Burst-quarters) * quarter
			got := local.TakeLocal(rule, another, now)
			if got.Allowed != allowed || got.Quota != want {
				t.Fatalf("%v: %+v, want %+v", rule, got, want)
			}
			number := want.ResetAfter.Microseconds()
			if !allowed {
				number = -1 - number
			}
			if read := rule.ParseQuota(number, 1); read != want {
				t.Fatalf("%v: %d is read as %+v, want %+v", rule, number, read, want)
			}
			if refused {
				certain++
				if allowed {
					t.Fatalf("%v: the copy was certain of a refusal that Redis does not give", rule)
				}
			}
			told.Update(want, now.Add(-time.Microsecond))
		}
		if certain < 100 {
			t.Errorf("%v: %d refusals were certain beforehand", rule, certain)
		}
	}
}

// another is the limit of an account that refuses nothing.
var another = tokenbucket.Per(1<<20, time.Second)

// A limit may be high and its period long: their product is more nanoseconds than there are.
func TestBucket_HighLimitLongPeriod(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, rule := range []tokenbucket.Rule{
		{Rate: 1 << 30, Burst: 1 << 30, Period: 366 * 24 * time.Hour}, {Rate: 200_000, Burst: 200_000, Period: 24 * time.Hour}, tokenbucket.Per(50, time.Minute),
	} {
		var b limit.Request
		first := b.TakeLocal(rule, another, now)
		if again := b.TakeLocal(rule, another, now); !first.Allowed || !again.Allowed || again.ResetAfter <= first.ResetAfter {
			t.Errorf("%v: %+v, then %+v", rule, first, again)
		}
	}
}
