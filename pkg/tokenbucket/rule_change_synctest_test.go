package tokenbucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/uuid"

	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// ruleChanges are rules of a bucket that is emptied, and the next ones.
var ruleChanges = map[string]struct{ old, next tokenbucket.Rule }{
	"raised":         {tokenbucket.Rule{Rate: 3, Burst: 3, Period: time.Hour}, tokenbucket.Rule{Rate: 1000, Burst: 1000, Period: time.Minute}},
	"lowered":        {tokenbucket.Rule{Rate: 60, Burst: 60, Period: time.Minute}, tokenbucket.Rule{Rate: 3, Burst: 3, Period: time.Hour}},
	"shorter period": {tokenbucket.Rule{Rate: 50, Burst: 50, Period: time.Hour}, fiftyAMinute},
	"longer period":  {fiftyAMinute, tokenbucket.Rule{Rate: 50, Burst: 50, Period: time.Hour}},
	"smaller burst":  {tokenbucket.Rule{Rate: 50, Burst: 500, Period: time.Minute}, fiftyAMinute},
}

// takesAcrossRules empties a bucket under the old rule and shows what it has under the next one: it lacks what it lacked, but no more than
// its burst, also a token later.
func takesAcrossRules(t *testing.T, old, next tokenbucket.Rule, take func(tokenbucket.Rule) (wait time.Duration), pass func(time.Duration)) {
	t.Helper()
	for n := range old.Burst {
		if wait := take(old); wait > 0 {
			t.Fatalf("request %d of %d waits %s", n, old.Burst, wait)
		}
	}
	emission, burst := next.Intervals()
	_, lacks := old.Intervals()
	lacks = min(lacks, burst)
	for range 2 {
		want := max(0, lacks+emission-burst)
		if wait := take(next); (wait - want).Abs() > 2*time.Millisecond {
			t.Errorf("under the next rule a request waits %s, want %s", wait, want)
		}
		if want == 0 {
			lacks += emission
		}
		pass(emission)
		lacks -= emission
	}
}

// Whatever a rule changes to, a bucket lacks at most one burst of the rule in force, in Redis and in memory.
func TestRule_Changes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		wait := func(rule tokenbucket.Rule, number int64) time.Duration {
			emission, burst := rule.Intervals()
			if number >= 0 {
				return 0
			}
			return time.Duration(-1-number)*time.Microsecond + emission - burst
		}
		for name, change := range ruleChanges {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := start(t)
				key, account := tokenbucket.KeyName(uuid.NewString()), tokenbucket.AccountName(network.Live, uuid.NewString())
				plenty := tokenbucket.Rule{Rate: 1 << 20, Burst: 1 << 20, Period: time.Minute}
				for what, take := range map[string]func(tokenbucket.Rule) time.Duration{
					"key": func(r tokenbucket.Rule) time.Duration { return wait(r, c.take(r, key)[0]) },
					"account": func(r tokenbucket.Rule) time.Duration {
						return wait(r, c.takeBoth(plenty, r, request{"of the account", account})[1])
					},
					"key on a Cluster": func(r tokenbucket.Rule) time.Duration {
						return wait(r, c.takeOnCluster(r, plenty, request{key, account})[0])
					},
					"account on a Cluster": func(r tokenbucket.Rule) time.Duration {
						return wait(r, c.takeOnCluster(plenty, r, request{"another key", "another account"})[1])
					},
					"key of its own": func(r tokenbucket.Rule) time.Duration {
						wait, err := tokenbucket.TakeOne(t.Context(), c.client, tokenbucket.Bucket{Name: "a limit:somebody", Rule: r})
						if err != nil {
							t.Fatal(err)
						}
						return wait
					},
				} {
					t.Run(what, func(t *testing.T) { takesAcrossRules(t, change.old, change.next, take, c.pass) })
				}
			})
		}
	})
	for name, change := range ruleChanges {
		t.Run("memory/"+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := tokenbucket.NewMemory(1)
				takesAcrossRules(t, change.old, change.next, func(r tokenbucket.Rule) time.Duration {
					return m.Take(tokenbucket.Bucket{Name: "a name", Rule: r})
				}, time.Sleep)
			})
		})
	}
}

// TakeOne and redis_rate read and write the same buckets, and decide alike.
func TestTakeOne_DecidesAsRedisRate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		random := rand.New(rand.NewPCG(1, 2))
		ours, theirs := start(t), start(t)
		oursToo, redisRate := redis_rate.NewLimiter(ours.client), redis_rate.NewLimiter(theirs.client)
		allowed, refused := 0, 0
		for round := range 500 {
			d := step(random)
			ours.pass(d)
			theirs.pass(d)
			i := random.IntN(len(rules))
			rule, name := rules[i], fmt.Sprint("a limit:", i)
			result, err := redisRate.Allow(t.Context(), name, redis_rate.Limit(rule))
			if err != nil {
				t.Fatal(err)
			}
			want := max(0, result.RetryAfter)
			var got time.Duration
			if random.IntN(2) == 0 {
				got, err = tokenbucket.TakeOne(t.Context(), ours.client, tokenbucket.Bucket{Name: name, Rule: rule})
			} else if result, err = oursToo.Allow(t.Context(), name, redis_rate.Limit(rule)); err == nil {
				got = max(0, result.RetryAfter)
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got > 0) != (want > 0) || (got-want).Abs() > time.Millisecond {
				t.Fatalf("round %d, %v: waits %s, want %s", round, rule, got, want)
			}
			if want > 0 {
				refused++
			} else {
				allowed++
			}
		}
		if allowed < 100 || refused < 50 {
			t.Errorf("%d allowed, %d refused: this shows little", allowed, refused)
		}
	})
}
