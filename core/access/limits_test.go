package access_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/pkg/topology"
)

// Password guesses are counted for an address whether or not it has an account, and a right password forgives them.
func TestGuessesAreLimited(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T) func(*access.Config){
		"in Redis":  func(t *testing.T) func(*access.Config) { t.Helper(); return countingIn(t, startRedis(t).URL, generous) },
		"in memory": func(*testing.T) func(*access.Config) { return func(*access.Config) {} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newService(t, change(t), func(c *access.Config) { c.Limits.SignInPerAccount = 3 }, withPasswords(t))
			if _, err := core.SignUp(t.Context(), access.Visitor{}, "Ann", "ann@example.com", password); err != nil {
				t.Fatal(err)
			}
			guess := func(email, password string) string {
				_, err := core.SignIn(t.Context(), access.Visitor{IP: uuid.NewString()}, email, password)
				switch {
				case err == nil:
					return "in"
				case errors.Is(err, access.ErrCredentials):
					return "wrong"
				case waits(t, err) > 0:
					return "limited"
				}
				return err.Error()
			}
			var known, unknown []string
			for range 4 {
				known = append(known, guess("Ann@example.com", "a wrong password"))
				unknown = append(unknown, guess("nobody@example.com", "a wrong password"))
			}
			want := []string{"wrong", "wrong", "wrong", "limited"}
			if diff := cmp.Diff([][]string{want, want, {"limited"}}, [][]string{known, unknown, {guess("ann@example.com", password)}}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if _, err := core.SignUp(t.Context(), access.Visitor{}, "Bob", "bob@example.com", password); err != nil {
				t.Fatal(err)
			}
			var bob []string
			for _, p := range []string{"wrong 1", "wrong 2", password, "wrong 3", "wrong 4", "wrong 5", password} {
				bob = append(bob, guess("bob@example.com", p))
			}
			if diff := cmp.Diff([]string{"wrong", "wrong", "in", "wrong", "wrong", "wrong", "limited"}, bob); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One subscriber has a whole /64 of version 6 addresses.
func TestNetworksAreCounted(t *testing.T) {
	t.Parallel()
	core := newService(t, func(c *access.Config) { c.Limits.SignInPerIP = 1 })
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
		_, err := core.WalletNonce(t.Context(), access.Visitor{IP: c.ip})
		if limited := waits(t, err) > 0; limited != c.limited {
			t.Errorf("%s: %v, want limited = %t", c.ip, err, c.limited)
		}
	}
}

// The console shows what gateways count, and spends none of it.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	change := countingIn(t, redis.URL, generous)
	core := newService(t, change)
	config := access.Config{}
	change(&config)
	key := &account.Key{ID: uuid.New(), LimitBucket: uuid.New(), Limit: account.Limit{Requests: 10, Period: time.Hour}}
	gateway := redis_rate.NewLimiter(config.Redis)
	if remaining, reset, err := core.RateLimit(t.Context(), key); remaining != 10 || reset != 0 || err != nil {
		t.Errorf("unused: %d, %s, %v", remaining, reset, err)
	}
	for range 3 {
		if _, err := gateway.Allow(t.Context(), "key:"+key.LimitBucket.String(), redis_rate.Limit{Rate: 10, Burst: 10, Period: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		remaining, reset, err := core.RateLimit(t.Context(), key)
		if remaining != 7 || reset < 16*time.Minute || reset > 18*time.Minute || err != nil {
			t.Errorf("after three requests: %d, %s, %v", remaining, reset, err)
		}
	}
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := core.RateLimit(t.Context(), key); !errors.Is(err, access.ErrLimitUnknown) {
		t.Errorf("without Redis: %v", err)
	}
	if _, _, err := newService(t).RateLimit(t.Context(), key); !errors.Is(err, access.ErrLimitUnknown) {
		t.Errorf("with none: %v", err)
	}
}

func TestNewRefusesLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []access.Limits{{}, {SignInPerIP: 1, SignInPerAccount: 1, SignUpPerIP: 1, KeysPerAccount: 1, KeysPerIP: access.MaxLimit + 1}} {
		if _, err := access.New(access.Config{Limits: limits, Metrics: prometheus.NewRegistry()}); err == nil {
			t.Errorf("%+v are taken", limits)
		}
	}
	if _, err := access.NewRedis(topology.Single, "http://:hunter2@127.0.0.1", time.Second, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a URL of something else: %v", err)
	}
}
