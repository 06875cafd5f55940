package limit_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/freeport"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
)

// newAccount is the bucket of a new account, which refills nothing while a test runs.
func newAccount(requests int) tokenbucket.Bucket {
	return tokenbucket.Bucket{
		Name: tokenbucket.AccountName(network.Live, uuid.NewString()),
		Rule: tokenbucket.Per(requests, 24*time.Hour),
	}
}

func newKey(rule tokenbucket.Rule) tokenbucket.Bucket {
	return tokenbucket.Bucket{Name: tokenbucket.KeyName(uuid.NewString()), Rule: rule}
}

func (l limiter) takeBoth(t *testing.T, key, account tokenbucket.Bucket) limit.Decision {
	t.Helper()
	return l.takeCost(t, key, account, 1)
}

// However many keys an account has, and whatever gateways batch and remember: as many requests of all its keys together pass as its
// limit says, and of each key no more than the key's. Another account is not touched.
func TestAccount_ExactOverReplicas(t *testing.T) {
	t.Parallel()
	exact := func(t *testing.T, replicas []limiter) {
		t.Helper()
		const keysEach, clients = 25, 12
		var accounts []tokenbucket.Bucket
		for range 3 {
			accounts = append(accounts, newAccount(1000), newAccount(700), newAccount(5000))
		}
		passed, byAccount, ofKey := make([]atomic.Int64, len(accounts)), make([]atomic.Int64, len(accounts)), sync.Map{}
		var keys [][]tokenbucket.Bucket
		for range accounts {
			keys = append(keys, nil)
			for range keysEach {
				keys[len(keys)-1] = append(keys[len(keys)-1], newKey(fiftyADay))
			}
		}
		var load sync.WaitGroup
		for client := range clients {
			load.Go(func() {
				for n := range keysEach * 6 * len(accounts) { // 72 requests of each key
					a := (n + client) % len(accounts)
					key := keys[a][n/len(accounts)%keysEach]
					d, err := replicas[(client+n)%len(replicas)].Limiter.Take(key, accounts[a], 1, new(limit.Refusals), time.Now())
					switch {
					case err != nil:
						t.Error(err)
					case d.Allowed:
						passed[a].Add(1)
						count, _ := ofKey.LoadOrStore(key.Name, new(atomic.Int64))
						count.(*atomic.Int64).Add(1)
					case d.ByAccount():
						byAccount[a].Add(1)
					}
				}
			})
		}
		load.Wait()
		for a := range accounts {
			if got, want := passed[a].Load(), []int64{1000, 700, keysEach * 50}[a%3]; got != want {
				t.Errorf("account %d: %d passed, want %d", a, got, want)
			}
			if refusedByAccount := byAccount[a].Load() > 0; refusedByAccount != (a%3 < 2) {
				t.Errorf("account %d refused: %t", a, refusedByAccount)
			}
		}
		ofKey.Range(func(_, count any) bool {
			if n := count.(*atomic.Int64).Load(); n > 50 {
				t.Errorf("%d of a key passed", n)
			}
			return true
		})
	}
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		r := startRedis(t, false)
		exact(t, []limiter{newLimiter(t, r.URL, generous, limit.Closed), newLimiter(t, r.URL, generous, limit.Closed), newLimiter(t, r.URL, generous, limit.Closed)})
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		exact(t, onCluster(t, topologytest.StartCluster(t, 3, 0, topologytest.Security{}), 3, generous, limit.Closed))
	})
}

// A refusal by either bucket charges neither, with Redis and without: what the other one has left stays.
func TestAccount_RefusalNotCharged(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"redis": startRedis(t, false).URL, "miniredis": startRedis(t, true).URL, "local": "redis://" + freeport.Address(t) + "/0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimiter(t, url, generous, limit.Local)
			account := newAccount(60)
			first, second := newKey(fiftyADay), newKey(fiftyADay)
			for range 70 {
				l.takeBoth(t, first, account)
			}
			d := l.takeBoth(t, first, account)
			if d.Allowed || d.ByAccount() || d.Remaining != 0 || d.Account.Remaining != 10 || d.Wait() != d.RetryAfter {
				t.Errorf("the key refuses: %+v", d)
			}
			for range 30 {
				l.takeBoth(t, second, account)
			}
			d = l.takeBoth(t, second, account)
			if d.Allowed || !d.ByAccount() || d.Remaining != 40 || d.Account.Remaining != 0 || d.Wait() != d.Account.RetryAfter {
				t.Errorf("the account refuses: %+v", d)
			}
			if another := l.takeBoth(t, second, newAccount(60)); !another.Allowed || another.Remaining != 39 {
				t.Errorf("the key has lost what the account refused: %+v", another)
			}
			// A day gives a key of 50 a token in 1,728 s, and an account of 60 in 1,440 s.
			if d := l.takeBoth(t, first, account); d.Wait() < 1700*time.Second || d.ByAccount() {
				t.Errorf("both refuse: %+v", d)
			}
		})
	}
}

// What an account's bucket refused is refused from memory for all its keys, and not for the keys of its other environment.
func TestAccount_CachedRefusal(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, startRedis(t, false).URL, generous, limit.Closed)
	account := newAccount(20)
	for range 21 {
		l.takeBoth(t, newKey(fiftyADay), account)
	}
	var asked callCounter
	l.redis.AddHook(&asked)
	for range 50 {
		if d := l.takeBoth(t, newKey(fiftyADay), account); d.Allowed || !d.Cached || !d.ByAccount() || d.Remaining != 50 {
			t.Fatalf("%+v", d)
		}
	}
	if calls := asked.calls.Load(); calls != 0 {
		t.Errorf("%d calls for refusals that were certain", calls)
	}
	test := account
	test.Name = strings.Replace(account.Name, "live", "test", 1)
	if d := l.takeBoth(t, newKey(fiftyADay), test); !d.Allowed || d.Account.Remaining != 19 {
		t.Errorf("a test key of the account: %+v", d)
	}
}
