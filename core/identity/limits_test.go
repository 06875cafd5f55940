package identity_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

// One subscriber has a whole /64 of version 6 addresses.
func TestLimits_IPv6Network(t *testing.T) {
	t.Parallel()
	core := newService(t, func(c *identity.Config) { c.Limits.SignInPerIP = 1 })
	for _, c := range []struct {
		ip      string
		limited bool
	}{
		{"203.0.113.7", false},
		{"203.0.113.7", true},
		{"::ffff:203.0.113.7", true},
		{"203.0.113.8", false},
		{"2001:db8::1", false},
		{"2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8:0:1::1", false},
	} {
		isLimited(t, c.ip, call(core.Persons.WalletNonce(t.Context(), identity.Client{IP: c.ip})), c.limited)
	}
}

// The console shows what gateways count, and spends none of it.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	change := countingIn(t, server.URL, generous)
	core := newService(t, change)
	config := identity.Config{}
	change(&config)
	gateway := redis_rate.NewLimiter(config.Redis)
	var keys []*account.Key
	limit := redis_rate.Limit{Rate: 10, Burst: 10, Period: time.Hour}
	for spent := range 12 { // two of which are refused at the last
		key := &account.Key{ID: uuid.New(), Environment: network.Live, LimitBucket: uuid.New(), Limit: account.Limit{Requests: limit.Rate, Period: limit.Period}}
		keys = append(keys, key)
		for range spent {
			ok(t, call(gateway.Allow(t.Context(), "key:"+key.LimitBucket.String(), limit)))
		}
	}
	// redis_rate says the same a moment later.
	roundTime := cmp.Transformer("round", func(d time.Duration) time.Duration { return d.Round(30 * time.Second) })
	for range 2 {
		var want []identity.RateLimit
		got := core.Keys.RateLimits(t.Context(), keys...)
		for _, key := range keys {
			is := must(gateway.AllowN(t.Context(), "key:"+key.LimitBucket.String(), limit, 0))(t)
			want = append(want, identity.RateLimit{Known: true, Remaining: is.Remaining, ResetAfter: max(0, is.ResetAfter)})
		}
		if diff := cmp.Diff(want, got, roundTime); diff != "" {
			t.Errorf("(-redis_rate +got):\n%s", diff)
		}
		if got[3].Remaining != 7 || got[11].Remaining != 0 {
			t.Errorf("after 3 and 11 of 10 requests: %+v, %+v", got[3], got[11])
		}
	}
	// What holds something else than a bucket is not known, and the others are.
	ok(t, config.Redis.Set(t.Context(), "rate:key:"+keys[1].LimitBucket.String(), "junk", 0).Err())
	if got := core.Keys.RateLimits(t.Context(), keys[0], keys[1], keys[2]); !got[0].Known || got[1].Known || !got[2].Known {
		t.Errorf("with one that is junk: %+v", got)
	}
	ok(t, server.Stop())
	unknown := make([]identity.RateLimit, 2)
	equal(t, "without Redis", core.Keys.RateLimits(t.Context(), keys[:2]...), unknown)
	equal(t, "with none", newService(t).Keys.RateLimits(t.Context(), keys[:2]...), unknown)
}

// A request is taken from the key's bucket and from that of the account and environment, or from neither, with Redis and without.
func TestTakeRequest_Account(t *testing.T) {
	t.Parallel()
	withRedis := newService(t, countingIn(t, startRedis(t).URL, generous))
	for name, core := range map[string]*identity.Service{"redis": withRedis, "memory": newService(t)} {
		owner := &account.Account{ID: uuid.New(), Limit: account.Limit{Requests: 4, Period: time.Hour}}
		newKey := func(env network.Environment) *account.Key {
			return &account.Key{AccountID: owner.ID, Environment: env, LimitBucket: uuid.New(), Limit: account.Limit{Requests: 3, Period: time.Hour}}
		}
		first, second := newKey(network.Live), newKey(network.Live)
		var got []string
		for _, key := range []*account.Key{first, first, first, first, second, second, newKey(network.Test)} {
			err := core.Keys.TakeRequest(t.Context(), owner, key)
			got = append(got, strconv.Itoa(int(waits(t, err).Round(time.Minute)/time.Minute)))
		}
		equal(t, fmt.Sprintf("%s: minutes to wait", name), strings.Join(got, " "), "0 0 0 20 0 15 0")
		if name == "redis" {
			live, test := core.Keys.AccountRateLimit(t.Context(), owner, network.Live), core.Keys.AccountRateLimit(t.Context(), owner, network.Test)
			if left := core.Keys.RateLimits(t.Context(), second)[0]; live.Remaining != 0 || test.Remaining != 3 || left.Remaining != 2 {
				t.Errorf("left: live %+v, test %+v, the second key %+v", live, test, left)
			}
		}
	}
}
