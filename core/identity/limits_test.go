package identity_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
	"intents.internal/pkg/topology"
)

// Password guesses are counted for an address whether or not it has an account, and a right password forgives them.
func TestLimits_PasswordGuesses(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newGuarded(t, store(t))
			signUp(t, core, identity.Client{}, "ann@example.com")
			signUp(t, core, identity.Client{}, "bob@example.com")
			guess := func(email, password string) string {
				return attempt(t, core, identity.Client{IP: "203.0.113.7"}, email, password)
			}
			var known, unknown, bob []string
			for range 4 {
				known = append(known, guess("Ann@example.com", "a wrong password"))
				unknown = append(unknown, guess("nobody@example.com", "a wrong password"))
			}
			for _, p := range []string{"wrong 1", "wrong 2", password, "wrong 3", "wrong 4", "wrong 5", password} {
				bob = append(bob, guess("bob@example.com", p))
			}
			want := []string{"wrong", "wrong", "wrong", "limited"}
			forgiven := []string{"wrong", "wrong", "in", "wrong", "wrong", "wrong", "limited"}
			if diff := cmp.Diff([][]string{want, want, forgiven}, [][]string{known, unknown, bob}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

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
		_, err := core.WalletNonce(t.Context(), identity.Client{IP: c.ip})
		if limited := waits(t, err) > 0; limited != c.limited {
			t.Errorf("%s: %v, want limited = %t", c.ip, err, c.limited)
		}
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
			if _, err := gateway.Allow(t.Context(), "key:"+key.LimitBucket.String(), limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	// redis_rate says the same a moment later.
	roundTime := cmp.Transformer("round", func(d time.Duration) time.Duration { return d.Round(30 * time.Second) })
	for range 2 {
		var want []identity.RateLimit
		got := core.RateLimits(t.Context(), keys...)
		for _, key := range keys {
			is, err := gateway.AllowN(t.Context(), "key:"+key.LimitBucket.String(), limit, 0)
			if err != nil {
				t.Fatal(err)
			}
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
	if err := config.Redis.Set(t.Context(), "rate:key:"+keys[1].LimitBucket.String(), "junk", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := core.RateLimits(t.Context(), keys[0], keys[1], keys[2]); !got[0].Known || got[1].Known || !got[2].Known {
		t.Errorf("with one that is junk: %+v", got)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	unknown := make([]identity.RateLimit, 2)
	if diff := cmp.Diff(unknown, core.RateLimits(t.Context(), keys[:2]...)); diff != "" {
		t.Errorf("without Redis (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(unknown, newService(t).RateLimits(t.Context(), keys[:2]...)); diff != "" {
		t.Errorf("with none (-want +got):\n%s", diff)
	}
}

// The console takes from the buckets that gateways share, and shows them, also when they are in no key of redis_rate's.
func TestTakeRequest(t *testing.T) {
	t.Parallel()
	change := countingIn(t, startRedis(t).URL, generous)
	core := newService(t, change)
	config := identity.Config{}
	change(&config)
	newKey := func() *account.Key {
		return &account.Key{ID: uuid.New(), AccountID: uuid.New(), Environment: network.Test, LimitBucket: uuid.New(), Limit: account.Limit{Requests: 3, Period: time.Hour}}
	}
	for _, key := range []*account.Key{newKey(), newKey()} {
		for left := 2; left >= 0; left-- {
			if err := core.TakeRequest(t.Context(), key, account.DefaultAccountLimit); err != nil {
				t.Fatalf("%d left: %v", left, err)
			}
			if got := core.RateLimits(t.Context(), key)[0]; !got.Known || got.Remaining != left {
				t.Errorf("%d left: %+v", left, got)
			}
		}
		if wait := waits(t, core.TakeRequest(t.Context(), key, account.DefaultAccountLimit)); wait < 19*time.Minute || wait > 20*time.Minute {
			t.Errorf("refused for %s, want the time of one request", wait)
		}
	}
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
			err := core.TakeRequest(t.Context(), key, owner.Limit)
			got = append(got, strconv.Itoa(int(waits(t, err).Round(time.Minute)/time.Minute)))
		}
		if diff := cmp.Diff("0 0 0 20 0 15 0", strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: minutes to wait (-want +got):\n%s", name, diff)
		}
		if name == "redis" {
			live, test := core.AccountRateLimit(t.Context(), owner, network.Live), core.AccountRateLimit(t.Context(), owner, network.Test)
			if left := core.RateLimits(t.Context(), second)[0]; live.Remaining != 0 || test.Remaining != 3 || left.Remaining != 2 {
				t.Errorf("left: live %+v, test %+v, the second key %+v", live, test, left)
			}
		}
	}
}

func TestNew_InvalidLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []identity.Limits{{}, {SignInPerIP: 1, SignInPerAccount: 1, SignInPerAccountAndIP: 1, SignUpPerIP: 1, KeysPerAccount: 1, KeysPerIP: identity.MaxLimit + 1, MailsPerAddress: 1, MailsPerIP: 1}} {
		if _, err := identity.New(identity.Config{Limits: limits, Metrics: prometheus.NewRegistry()}); err == nil {
			t.Errorf("%+v are taken", limits)
		}
	}
	if _, err := identity.NewRedis(topology.Single, "http://:hunter2@127.0.0.1", time.Second); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a URL of something else: %v", err)
	}
}
