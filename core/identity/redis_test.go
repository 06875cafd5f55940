package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/topology"
)

// generous is a budget that a busy machine keeps; what is tested is not the time.
const generous = 10 * time.Second

// startRedis runs a private Redis.
func startRedis(t *testing.T) *embedded.Redis {
	t.Helper()
	r, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop() })
	if r.PID() == 0 && os.Getenv("CI") == "true" {
		t.Fatal("no redis-server or valkey-server on PATH: this test wants a real one")
	}
	return r
}

// countingIn lets a service keep its limits in the Redis at url.
func countingIn(t *testing.T, url string, budget time.Duration) func(*identity.Config) {
	t.Helper()
	return countingOn(t, topology.Single, url, budget)
}

func countingOn(t *testing.T, mode topology.Mode, url string, budget time.Duration) func(*identity.Config) {
	t.Helper()
	client, err := identity.NewRedis(mode, url, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return func(c *identity.Config) { c.Redis = client }
}

// newOwner is an account without a password.
func newOwner(t *testing.T, store *postgres.Store) uuid.UUID {
	t.Helper()
	owner, err := account.New("Ann", uuid.NewString()+"@example.com", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(owner.ID, account.Actor{}, account.SignedUp, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.InsertAccount(t.Context(), owner, entry); err != nil {
		t.Fatal(err)
	}
	return owner.ID
}

// waits is how long a client was told to wait, and fails the test on any other error.
func waits(t *testing.T, err error) time.Duration {
	t.Helper()
	limited, is := errors.AsType[*identity.LimitedError](err)
	if !is {
		if err != nil {
			t.Error(err)
		}
		return 0
	}
	return limited.RetryAfter
}

// madeKeys makes n keys at once and tells how many were not refused.
func madeKeys(t *testing.T, n int, owner uuid.UUID, cores ...*identity.Service) int {
	t.Helper()
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, _, err := cores[i%len(cores)].CreateKey(t.Context(), identity.Client{IP: fmt.Sprintf("203.0.113.%d", i)}, &identity.Principal{Account: &account.Account{ID: owner}}, account.KeyRequest{Name: "ci"})
			if wait := waits(t, err); wait == 0 {
				made.Add(1)
			} else if wait > 12*time.Minute { // a fifth of an hour is the time of one key
				t.Errorf("told to wait %s", wait)
			}
		})
	}
	all.Wait()
	return int(made.Load())
}

// counters are the values of all counters and gauges and the numbers of observations of all histograms.
func counters(t *testing.T, gatherer prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			counted[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return counted
}

// What one core counts the others know; while Redis is away each counts alone, and says so once.
func TestLimits_SharedByCores(t *testing.T) {
	t.Parallel()
	redis, store := startRedis(t), pgtest.New(t)
	var logs [2]bytes.Buffer
	var cores [2]*identity.Service
	var registries [2]*prometheus.Registry
	for i := range cores {
		registries[i] = prometheus.NewRegistry()
		cores[i] = newServiceOn(t, store, countingIn(t, redis.URL, generous), func(c *identity.Config) {
			c.Limits.KeysPerAccount = 5
			c.Metrics, c.Log = registries[i], slog.New(slog.NewJSONHandler(&logs[i], nil))
		})
	}
	if made := madeKeys(t, 20, newOwner(t, store), cores[:]...); made != 5 {
		t.Errorf("two cores let %d keys through, want 5", made)
	}
	allowed := 0.0
	for i := range cores {
		counted := counters(t, registries[i])
		allowed += counted["intents_core_access_decisions_total allowed keys-account"]
		if counted["intents_core_access_redis_failures_total"] != 0 || logs[i].Len() > 0 {
			t.Errorf("with Redis: %v, %s", counted, &logs[i])
		}
	}
	if allowed != 5 {
		t.Errorf("both together count %g allowed", allowed)
	}

	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	owner := newOwner(t, store)
	for i, core := range cores {
		if made := madeKeys(t, 20, owner, core); made != 5 {
			t.Errorf("alone, a core let %d keys through, want 5", made)
		}
		counted := counters(t, registries[i])
		if counted["intents_core_access_decisions_total fallback_allowed keys-account"] != 5 ||
			counted["intents_core_access_decisions_total fallback_refused keys-account"] != 15 || counted["intents_core_access_redis_failures_total"] == 0 {
			t.Errorf("without Redis: %v", counted)
		}
		if n := strings.Count(logs[i].String(), "\n"); n != 1 {
			t.Errorf("%d log lines, want one:\n%s", n, &logs[i])
		}
	}

	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, core := range cores {
		awaitRedis(t, core)
	}
	if made := madeKeys(t, 20, newOwner(t, store), cores[:]...); made != 5 {
		t.Errorf("with Redis again, two cores let %d keys through, want 5", made)
	}
}

// awaitRedis waits until a core uses Redis.
func awaitRedis(t *testing.T, core *identity.Service) {
	t.Helper()
	asynctest.Eventually(t, "Redis is used again", func() bool {
		return core.RateLimits(t.Context(), &account.Key{Environment: network.Test, LimitBucket: uuid.New(), Limit: account.DefaultLimit})[0].Known
	})
}

// A Redis that takes connections and says nothing holds clients up now and then, not each of them.
func TestLimits_RedisHangs(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dials atomic.Int64
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			defer conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
	})
	core := newService(t, countingIn(t, "redis://"+listener.Addr().String()+"/0", 50*time.Millisecond))
	began := time.Now()
	for range 50 {
		if _, err := core.WalletNonce(t.Context(), identity.Client{IP: "203.0.113.7"}); err != nil {
			t.Fatal(err)
		}
	}
	if most := 2 + int64(time.Since(began)/time.Second); dials.Load() > most {
		t.Errorf("%d dials in %s", dials.Load(), time.Since(began))
	}
}

// Somebody who leaves is not taken for a fault of Redis, and spends nothing here.
func TestLimits_RequestCanceled(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	core := newService(t, countingIn(t, startRedis(t).URL, generous), func(c *identity.Config) { c.Metrics = registry })
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := core.WalletNonce(gone, identity.Client{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the client has left", err)
	}
	for name, n := range counters(t, registry) {
		if n != 0 {
			t.Errorf("counted %g %s", n, name)
		}
	}
}
