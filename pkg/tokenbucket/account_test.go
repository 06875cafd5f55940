package tokenbucket_test

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// model is a plain GCRA on one clock: the TAT of each bucket by its name.
type model struct {
	now  time.Time
	tats map[string]float64
}

// take decides on requests one after the other, which take so many tokens of their account, and replies as the script does.
func (m *model) take(cost int, key, account tokenbucket.Rule, requests ...request) (reply []int64) {
	now := float64(m.now.UnixMicro())/1e6 - tokenbucket.Epoch
	for _, r := range requests {
		keyTAT, keyNext, keyAllows := m.next(r.key, 1, key, now)
		accountTAT, accountNext, accountAllows := m.next(r.account, cost, account, now)
		if keyAllows && accountAllows {
			keyTAT, accountTAT = keyNext, accountNext
		}
		m.tats[r.key], m.tats[r.account] = keyTAT, accountTAT
		reply = append(reply, number(keyTAT-now, keyAllows), number(accountTAT-now, accountAllows))
	}
	return reply
}

func (m *model) next(name string, cost int, rule tokenbucket.Rule, now float64) (tat, next float64, allows bool) {
	interval := rule.Period.Seconds() / float64(rule.Rate)
	taken, offset := interval*float64(cost), interval*float64(rule.Burst)
	tat = min(max(now, m.tats[name]), now+offset) // a TAT that a clock ahead has left is an empty bucket
	return tat, tat + taken, now-(tat+taken-offset) >= 0
}

func number(seconds float64, allows bool) int64 {
	micros := int64(math.Floor(seconds*1e6 + 0.5))
	if allows {
		return micros
	}
	return -1 - micros
}

// accountRules are tight enough that accounts refuse about as often as keys.
var accountRules = []tokenbucket.Rule{
	{Rate: 100, Burst: 100, Period: time.Minute},
	{Rate: 5, Burst: 5, Period: time.Second},
	{Rate: 12, Burst: 40, Period: time.Hour},
}

// owner is an account with the buckets of its keys.
type owner struct {
	account string
	keys    []string
}

// newOwners are two accounts, one of them in both environments.
func newOwners() (owners []owner) {
	one := uuid.NewString()
	for _, account := range []string{
		tokenbucket.AccountName(network.Live, one), tokenbucket.AccountName(network.Test, one), tokenbucket.AccountName(network.Live, uuid.NewString()),
	} {
		o := owner{account: account}
		for range 5 {
			o.keys = append(o.keys, tokenbucket.KeyName(uuid.NewString()))
		}
		owners = append(owners, o)
	}
	return owners
}

// someRequests are requests with keys of these accounts, in an order that a Call takes.
func someRequests(random *rand.Rand, owners []owner) []request {
	requests := make([]request, 1+random.IntN(20))
	for i := range requests {
		o := owners[random.IntN(len(owners))]
		requests[i] = request{o.keys[random.IntN(1+random.IntN(len(o.keys)))], o.account}
	}
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(strings.Compare(a.account, b.account), strings.Compare(a.key, b.key))
	})
	return requests
}

// Whatever the accounts and keys of a batch, equal ones included, and however much time lies between batches, generations of it too:
// a request takes one token of its key and one or more of its account, or none, as in a model that takes one after the other.
func TestCall_KeysAndAccounts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		for _, onCluster := range []bool{false, true} {
			random := rand.New(rand.NewPCG(1, 2))
			c := start(t)
			owners := [][]owner{newOwners(), newOwners(), newOwners()}
			m := &model{now: c.now, tats: map[string]float64{}}
			var allowed, byKey, byAccount int
			for round := range 500 {
				c.pass(step(random))
				m.now = c.now
				i := random.IntN(len(accountRules)) // the rules of an account do not change
				key, account, requests, cost := rules[i], accountRules[i], someRequests(random, owners[i]), 1
				if random.IntN(3) == 0 {
					cost += random.IntN(account.Burst)
				}
				if onCluster {
					requests = slices.DeleteFunc(requests, func(r request) bool { return r.account != requests[0].account })
				}
				var got []int64
				if onCluster {
					got = c.takeManyOnCluster(cost, key, account, requests...)
				} else {
					got = c.takeMany(cost, key, account, requests...)
				}
				want := m.take(cost, key, account, requests...)
				if !slices.EqualFunc(want, got, near) {
					t.Fatalf("on a cluster %t, round %d, %v and %d of %v, %v \nwant %v\n got %v", onCluster, round, key, cost, account, requests, want, got)
				}
				for n := range requests {
					switch k, a := got[2*n], got[2*n+1]; {
					case k >= 0 && a >= 0:
						allowed++
					case k < 0:
						byKey++
					default:
						byAccount++
					}
				}
			}
			if min(allowed, byKey, byAccount) < 10 {
				t.Errorf("on a cluster %t: %d allowed, %d refused by a key, %d by an account: this shows little", onCluster, allowed, byKey, byAccount)
			}
		}
	})
}

// A full bucket has its whole burst for one request, whatever the fraction of the second; the rest of it comes back in the time that
// Rule.Left says, for one token and for many.
func TestCall_WholeBurst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		random := rand.New(rand.NewPCG(1, 2))
		c := start(t)
		for form, take := range map[string]func(cost int, key, account tokenbucket.Rule, requests ...request) []int64{
			"one server": c.takeMany, "a cluster": c.takeManyOnCluster,
		} {
			for _, account := range append(accountRules, rules[2], tokenbucket.Rule{Rate: 1000, Burst: 1000, Period: time.Minute}) {
				for range 50 {
					c.pass(time.Duration(random.Int64N(int64(time.Second))).Truncate(time.Microsecond))
					of, plenty := request{"key:" + uuid.NewString(), tokenbucket.AccountName(network.Live, uuid.NewString())}, rules[0]
					if got := take(account.Burst, plenty, account, of); got[1] < 0 {
						t.Fatalf("%s, %v at %s: a full bucket refuses its burst: %v", form, account, c.now, got)
					}
					n := 1 + random.IntN(account.Burst)
					refused := take(n, plenty, account, of)
					if refused[1] >= 0 || refused[0] < 0 {
						t.Fatalf("%s, %v: an empty bucket has %d: %v", form, account, n, refused)
					}
					wait := account.ParseQuota(refused[1], n).RetryAfter
					c.pass((wait - time.Millisecond).Truncate(time.Microsecond))
					if got := take(n, plenty, account, of); got[1] >= 0 {
						t.Fatalf("%s, %v: %d tokens a millisecond before their time: %v", form, account, n, got)
					}
					c.pass(2 * time.Millisecond)
					if got := take(n, plenty, account, of); got[1] < 0 {
						t.Fatalf("%s, %v: no %d tokens after %s: %v", form, account, n, wait, got)
					}
				}
			}
		}
	})
}

// An account's bucket that was written under a clock an hour ahead counts as empty and refills, and no key is charged meanwhile.
func TestCall_AccountClockStepsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		for _, account := range accountRules[:2] {
			c := start(t)
			for _, take := range []func(key, account tokenbucket.Rule, requests ...request) []int64{c.takeBoth, c.takeOnCluster} {
				name, token := tokenbucket.AccountName(network.Live, uuid.NewString()), account.Period/time.Duration(account.Rate)
				of := func() request { return request{tokenbucket.KeyName(uuid.NewString()), name} }
				take(fiftyAMinute, account, of())
				c.pass(-time.Hour)
				empty := -1 - account.Period.Microseconds()
				if got := take(fiftyAMinute, account, of()); got[0] != 0 || !near(got[1], empty) {
					t.Errorf("%v, back again: %v, want 0 and %d", account, got, empty)
				}
				c.pass(token + time.Microsecond) // which no rounding takes away
				got := take(fiftyAMinute, account, of(), of())
				if want := []int64{1200000, account.Period.Microseconds(), 0, empty}; !slices.EqualFunc(want, got, near) {
					t.Errorf("%v, a token later: %v, want %v", account, got, want)
				}
				c.pass(2 * time.Hour)
			}
		}
	})
}

// On a Cluster an account's hash ends once its buckets are full, and full buckets of many keys that came and went leave it before.
func TestCall_AccountHashBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		account := tokenbucket.AccountName(network.Live, uuid.NewString())
		hash, rule := tokenbucket.AccountHash(account), tokenbucket.Rule{Rate: 1000, Burst: 1000, Period: time.Minute}
		for range 300 {
			c.takeOnCluster(fiftyAMinute, rule, request{"key:" + uuid.NewString(), account})
		}
		if ttl := c.client.TTL(t.Context(), hash).Val(); ttl < time.Minute || ttl > 2*time.Minute {
			t.Errorf("the hash ends in %s", ttl)
		}
		c.pass(90 * time.Second)
		// The test's clock is not that of TTL in Redis.
		if err := c.client.Expire(t.Context(), hash, 30*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		last := request{"key:" + uuid.NewString(), account}
		c.takeOnCluster(fiftyAMinute, rule, last)
		if n := c.client.HLen(t.Context(), hash).Val(); n != 2 {
			t.Errorf("%d buckets are left, want that of the account and that of the last key", n)
		}
		got := c.client.HGet(t.Context(), hash, tokenbucket.Field(last.key)).Val()
		if len(got) == 8 && math.Float64frombits(binary.LittleEndian.Uint64([]byte(got))) < float64(c.now.Unix()-tokenbucket.Epoch) {
			t.Error("a bucket in use was dropped")
		}
	})
}
