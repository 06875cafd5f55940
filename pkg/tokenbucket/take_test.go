package tokenbucket_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/pkg/tokenbucket"
)

var (
	fiftyAMinute = tokenbucket.Rule{Rate: 50, Burst: 50, Period: time.Minute}
	rules        = []tokenbucket.Rule{
		fiftyAMinute,
		{Rate: 3, Burst: 3, Period: time.Second},
		{Rate: 7, Burst: 20, Period: time.Hour},
		{Rate: 6, Burst: 6, Period: 64 * time.Second},
		{Rate: 5, Burst: 5, Period: 65 * time.Second},
		{Rate: 2, Burst: 2, Period: 24 * time.Hour},
	}
)

// names are keys' buckets, and some others.
func names() []string {
	all := []string{"n", "a name"}
	for range 6 {
		all = append(all, "key:"+uuid.NewString())
	}
	return all
}

// step is a time between two calls: none, about a generation, or any.
func step(random *rand.Rand) time.Duration {
	switch random.IntN(6) {
	case 0:
		return 64*time.Second + time.Duration(random.IntN(3)-1)*time.Microsecond
	case 1:
		return time.Duration(random.Int64N(int64(200 * time.Second))).Truncate(time.Microsecond)
	case 2, 3:
		return time.Duration(random.Int64N(int64(2 * time.Second))).Truncate(time.Microsecond)
	default:
		return 0
	}
}

// near allows for rounding to microseconds, and for the 14 digits that miniredis keeps of numbers.
func near(a, b int64) bool { return (a < 0) == (b < 0) && a-b < 20 && b-a < 20 }

// Whatever the rules of a bucket and the times between its requests: a call decides on them as redis_rate does on one after the
// other. Four walks from empty buckets wait for their Redis at the same time.
func TestCall_DecidesAsRedisRate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		for seed := range uint64(4) {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				walkAsRedisRate(t, rand.New(rand.NewPCG(1, seed)), start(t), start(t))
			})
		}
	})
}

func walkAsRedisRate(t *testing.T, random *rand.Rand, ours, theirs *clocked) {
	t.Helper()
	redisRate := redis_rate.NewLimiter(theirs.client)
	all := make([][]string, len(rules))
	for i := range all {
		all[i] = append(names()[2:], fmt.Sprint("a name with rule ", i))
	}
	allowed, refused := 0, 0
	for round := range 375 {
		d := step(random)
		ours.pass(d)
		theirs.pass(d)
		i := random.IntN(len(rules))
		batch := make([]string, 1+random.IntN(12))
		for n := range batch {
			batch[n] = all[i][random.IntN(len(all[i]))]
		}
		slices.Sort(batch)
		got := ours.take(rules[i], batch...)
		want := make([]int64, len(batch))
		for n, name := range batch {
			result, err := redisRate.Allow(t.Context(), name, redis_rate.Limit(rules[i]))
			if err != nil {
				t.Fatal(err)
			}
			if want[n] = result.ResetAfter.Microseconds(); result.Allowed == 0 {
				want[n] = -1 - want[n]
				refused++
			} else {
				allowed++
			}
		}
		if !slices.EqualFunc(want, got, near) {
			t.Fatalf("round %d, %v, %v (-want +got):\n%s", round, rules[i], batch, cmp.Diff(want, got))
		}
	}
	if allowed < 250 || refused < 250 {
		t.Errorf("%d allowed, %d refused: this shows little", allowed, refused)
	}
}

// A bucket that was emptied in the last microsecond of a generation is still empty in the next one, and in the first moment of the
// generation after that it has what it got back.
func TestCall_GenerationEnds(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		const generation, token = 64 * time.Second, 1200 * time.Millisecond
		c, name := start(t), "key:"+uuid.NewString()
		c.pass(generation - time.Microsecond)
		passed := func() (n int) {
			for c.take(fiftyAMinute, name)[0] >= 0 {
				n++
			}
			return n
		}
		if n := passed(); n != 50 {
			t.Fatalf("%d passed, want 50", n)
		}
		c.pass(time.Microsecond)
		c.take(fiftyAMinute, "it begins the next generation")
		if n := passed(); n != 0 {
			t.Errorf("%d passed a microsecond later", n)
		}
		for range 45 {
			c.pass(token)
			c.take(fiftyAMinute, "another bucket")
		}
		if n := passed(); n != 45 {
			t.Errorf("%d passed 45 tokens later", n)
		}
		c.pass(generation)
		c.take(fiftyAMinute, "it begins the one after that")
		if n := passed(); n != 50 {
			t.Errorf("%d passed after a generation of 53 tokens", n)
		}
		c.pass(10 * token)
		if n := passed(); n != 10 {
			t.Errorf("%d passed ten tokens later", n)
		}
	})
}

// A bucket that was written under a clock an hour ahead counts as empty, in every generation and with every rule.
func TestCall_ClockStepsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		for _, rule := range []tokenbucket.Rule{fiftyAMinute, {Rate: 60, Burst: 60, Period: 20 * time.Minute}} {
			for _, later := range []time.Duration{0, time.Second, 64 * time.Second} { // in the hash of the current or the previous generation
				c, name := start(t), "key:"+uuid.NewString()
				c.take(rule, name)
				c.pass(later)
				c.take(rule, "another bucket")
				c.pass(-time.Hour)
				token := rule.Period / time.Duration(rule.Rate)
				want := -1 - rule.Period.Microseconds()
				if got := c.take(rule, name)[0]; !near(got, want) {
					t.Errorf("%v, back after %s: %d, want %d", rule, later, got, want)
				}
				if began, err := c.client.HGet(t.Context(), tokenbucket.Current, "began").Int64(); err != nil || began+tokenbucket.Epoch != c.now.Unix() {
					t.Errorf("%v, back after %s: the generation began at %d, %v", rule, later, began, err)
				}
				c.pass(token)
				if got := c.take(rule, name, name); !near(got[0], rule.Period.Microseconds()) || !near(got[1], want) {
					t.Errorf("%v, a token later: %d, want one request", rule, got)
				}
				// It refills all the same, and for good.
				c.pass(rule.Period)
				c.take(rule, "another bucket")
				c.pass(2 * 64 * time.Second)
				c.take(rule, "another bucket")
				if got := c.take(rule, name)[0]; !near(got, token.Microseconds()) {
					t.Errorf("%v, much later: %d, want %d", rule, got, token.Microseconds())
				}
			}
		}
	})
}

// However often the clock is set back: buckets that are in use lose nothing.
func TestCall_ClockStepsBackUnderLoad(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		random := rand.New(rand.NewPCG(1, 2))
		c := start(t)
		m := &model{now: c.now, tats: map[string]float64{}}
		var all []request
		for _, name := range names() {
			all = append(all, request{name, "the account of " + name})
		}
		for round := range 600 {
			d := time.Duration(random.Int64N(int64(4 * time.Second))).Truncate(time.Microsecond)
			if round%20 == 0 {
				d = -time.Hour
			}
			c.pass(d)
			m.now = c.now
			got, want := c.takeBoth(fiftyAMinute, fiftyAMinute, all...), m.take(1, fiftyAMinute, fiftyAMinute, all...)
			if !slices.EqualFunc(want, got, near) {
				t.Fatalf("round %d (-want +got):\n%s", round, cmp.Diff(want, got))
			}
		}
	})
}
