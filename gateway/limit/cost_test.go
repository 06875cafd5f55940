package limit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/freeport"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
)

// result is a decision, with what is left in both buckets and how many tokens of which bucket a refused request waits for.
type result struct {
	Allowed       bool
	Key, Account  int
	ByAccount     bool
	WaitsForToken int
}

// fiveADay is the rule of a key; that of its account is twenty a day.
var fiveADay = tokenbucket.Per(5, 24*time.Hour)

func resultOf(d limit.Decision) result {
	r := result{Allowed: d.Allowed, Key: d.Remaining, Account: d.Account.Remaining, ByAccount: d.ByAccount()}
	if rule := d.Rule; !d.Allowed {
		if r.ByAccount {
			rule = d.Account.Rule
		}
		token := rule.Period / time.Duration(rule.Rate)
		r.WaitsForToken = int((d.Wait() + token - 1) / token)
	}
	return r
}

// costs are requests for n tokens of an account that has so many left, with a key that has so many left.
var costs = []struct {
	leftInKey, leftInAccount, n int
	want                        result
}{
	{5, 20, 1, result{Allowed: true, Key: 4, Account: 19}},
	{5, 20, 20, result{Allowed: true, Key: 4, Account: 0}},
	{1, 10, 10, result{Allowed: true, Key: 0, Account: 0}},
	{3, 10, 9, result{Allowed: true, Key: 2, Account: 1}},
	{5, 10, 11, result{Key: 5, Account: 10, ByAccount: true, WaitsForToken: 1}},
	{5, 10, 20, result{Key: 5, Account: 10, ByAccount: true, WaitsForToken: 10}},
	{5, 0, 1, result{Key: 5, Account: 0, ByAccount: true, WaitsForToken: 1}},
	{5, 0, 20, result{Key: 5, Account: 0, ByAccount: true, WaitsForToken: 20}},
	{0, 10, 1, result{Key: 0, Account: 10, WaitsForToken: 1}},
	{0, 10, 10, result{Key: 0, Account: 10, WaitsForToken: 1}},
	{0, 3, 10, result{Key: 0, Account: 3, ByAccount: true, WaitsForToken: 7}},
	{0, 9, 10, result{Key: 0, Account: 9, WaitsForToken: 1}}, // a token of the key takes longer than one of the account
}

// A request takes one token of its key and n of its account, or none of either, and a refused one waits until n are there; wherever the
// buckets are, and as the next request of one token sees it.
func TestTake_Costs(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, l, next limiter) {
		t.Helper()
		for _, c := range costs {
			name := fmt.Sprintf("%d left in the key, %d in the account, n = %d", c.leftInKey, c.leftInAccount, c.n)
			key, other, account := newKey(fiveADay), newKey(plenty), newAccount(20)
			for range 5 - c.leftInKey {
				next.takeCost(t, key, account, 1) // the other replica, so that this one has no copy
			}
			for range 20 - (5 - c.leftInKey) - c.leftInAccount {
				next.takeCost(t, other, account, 1)
			}
			if diff := cmp.Diff(c.want, resultOf(l.takeCost(t, key, account, c.n))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			after := result{Allowed: c.want.Key > 0 && c.want.Account > 0, Key: c.want.Key, Account: c.want.Account}
			if after.Allowed {
				after.Key, after.Account = after.Key-1, after.Account-1
			} else {
				after.ByAccount, after.WaitsForToken = after.Key > 0, 1
			}
			if diff := cmp.Diff(after, resultOf(next.takeCost(t, key, account, 1))); diff != "" {
				t.Errorf("%s, the next request (-want +got):\n%s", name, diff)
			}
		}
	}
	for _, inProcess := range []bool{false, true} {
		t.Run(fmt.Sprintf("one server, in this process %t", inProcess), func(t *testing.T) {
			t.Parallel()
			url := startRedis(t, inProcess).URL
			check(t, newLimiter(t, url, generous, limit.Closed), newLimiter(t, url, generous, limit.Closed))
		})
	}
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		replicas := onCluster(t, topologytest.StartCluster(t, 3, 0, topologytest.Security{}), 2, generous, limit.Closed)
		check(t, replicas[0], replicas[1])
	})
	t.Run("without redis", func(t *testing.T) {
		t.Parallel()
		l := newLimiter(t, "redis://"+freeport.Address(t)+"/0", 50*time.Millisecond, limit.Local)
		check(t, l, l)
	})
}

// A refusal that is remembered refuses what costs as much or more, and says nothing of smaller costs. One of a single token refuses all.
func TestTake_CachedRefusalOfCosts(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, startRedis(t, false).URL, generous, limit.Closed)
	key, account, refusals := newKey(fiftyADay), newAccount(20), &limit.Refusals{}
	var asked callCounter
	take := func(n int, allowed, cached bool) {
		t.Helper()
		before := asked.calls.Load()
		d, err := l.Limiter.Take(key, account, n, refusals, time.Now())
		if calls := asked.calls.Load() - before; err != nil || d.Allowed != allowed || d.Cached != cached || (calls == 0) != cached {
			t.Errorf("%d tokens: %+v, %v in %d calls, want allowed %t, cached %t", n, d, err, calls, allowed, cached)
		}
	}
	peek := func(want bool) {
		t.Helper()
		before := asked.calls.Load()
		if _, refused := l.CachedRefusal(key, account, refusals, time.Now()); refused != want || asked.calls.Load() != before {
			t.Errorf("a refusal of one token is cached: %t, want %t without a call", refused, want)
		}
	}
	l.takeCost(t, key, account, 15) // which teaches Redis the script
	l.redis.AddHook(&asked)
	peek(false)
	take(10, false, true) // the copy has five
	take(6, false, true)
	peek(false)
	take(4, true, false)
	take(2, false, true)
	take(1, true, false)
	peek(true)
	for _, n := range []int{1, 2, 20, 1} {
		take(n, false, true)
	}
	peek(true)
}

// Requests of several costs that wait together take one round trip, and neither gets more than its account has.
func TestTake_CostsShareRoundTrip(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, startRedis(t, false).URL, generous, limit.Closed)
	l.takeCost(t, newKey(plenty), newAccount(20), 1) // Redis knows the script from now on
	g := &gate{open: make(chan struct{})}
	l.redis.AddHook(g)
	var all sync.WaitGroup
	all.Go(func() { l.takeCost(t, newKey(plenty), newAccount(20), 1) })
	asynctest.Eventually(t, "the first request is on its way", func() bool { return g.trips.Load() == 1 })
	account := newAccount(20)
	var allowed [3]atomic.Int64
	for i, cost := range []int{1, 4, 7} {
		for range 3 { // 36 tokens, of which the account has 20: in the order of costs three of one, three of four, none of seven
			all.Go(func() {
				if l.takeCost(t, newKey(plenty), account, cost).Allowed {
					allowed[i].Add(1)
				}
			})
		}
	}
	asynctest.Eventually(t, "the others wait", func() bool { return limit.Waiting(l.Limiter) == 9 })
	close(g.open)
	all.Wait()
	if got := [3]int64{allowed[0].Load(), allowed[1].Load(), allowed[2].Load()}; got != [3]int64{3, 3, 0} || g.trips.Load() != 2 {
		t.Errorf("%v passed in %d round trips, want three of one token, three of four and none of seven in two", got, g.trips.Load())
	}
}

func (l limiter) takeCost(t *testing.T, key, account tokenbucket.Bucket, cost int) limit.Decision {
	t.Helper()
	d, err := l.Limiter.Take(key, account, cost, new(limit.Refusals), time.Now())
	if err != nil {
		t.Error(err)
	}
	return d
}
