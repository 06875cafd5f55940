package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// generous is a budget that a busy machine keeps; what is tested is not the time.
const generous = 10 * time.Second

// startRedis runs a private Redis.
func startRedis(t *testing.T) *embedded.Redis {
	t.Helper()
	r := must(embedded.StartRedis(t.Context(), embedded.RedisConfig{}))(t)
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
	client := must(identity.NewRedis(mode, url, budget))(t)
	t.Cleanup(func() { _ = client.Close() })
	return func(c *identity.Config) { c.Redis = client }
}

// newOwner is an account without a password.
func newOwner(t *testing.T, store *rooms.Rooms) uuid.UUID {
	t.Helper()
	owner := must(account.New("Ann", uuid.NewString()+"@example.com", "", time.Now()))(t)
	entry := must(account.NewAuditEntry(owner.ID, account.Actor{}, account.SignedUp, time.Now()))(t)
	ok(t, store.Identities.InsertAccount(t.Context(), owner, entry))
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

// principalOf is an account's owner in a session of its own.
func principalOf(t *testing.T, owner uuid.UUID, core *identity.Service) *identity.Principal {
	t.Helper()
	session := must2(account.NewSession(owner, "", "", time.Now()))(t)
	as := &account.Account{ID: owner}
	entry := must(account.NewAuditEntry(owner, account.Actor{}, account.SignedIn, time.Now()))(t)
	ok(t, core.Store.InsertSession(t.Context(), session, as, entry))
	return &identity.Principal{Session: session, Person: as, Account: as}
}

// madeKeys makes n keys at once and tells how many were not refused.
func madeKeys(t *testing.T, n int, owner uuid.UUID, cores ...*identity.Service) int {
	t.Helper()
	as := principalOf(t, owner, cores[0])
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, _, err := cores[i%len(cores)].Keys.Create(t.Context(), identity.Client{IP: fmt.Sprintf("203.0.113.%d", i)}, as, account.KeyRequest{Name: "ci"})
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

// newCores are n cores on a database, which share their limits, five keys an hour. Each has its metrics and its log.
func newCores(t *testing.T, n int, store *rooms.Rooms, mode topology.Mode, url string, budget time.Duration) ([]*identity.Service, []*prometheus.Registry, []bytes.Buffer) {
	t.Helper()
	cores, registries, logs := make([]*identity.Service, n), make([]*prometheus.Registry, n), make([]bytes.Buffer, n)
	for i := range cores {
		registries[i] = prometheus.NewRegistry()
		cores[i] = newServiceOn(t, store, countingOn(t, mode, url, budget), func(c *identity.Config) {
			c.Limits.KeysPerAccount = 5
			c.Metrics, c.Log = registries[i], slog.New(slog.NewJSONHandler(&logs[i], nil))
		})
	}
	return cores, registries, logs
}

// decided is how often cores decided about the keys of accounts.
func decided(t *testing.T, how string, registries ...*prometheus.Registry) (n float64) {
	t.Helper()
	for _, registry := range registries {
		n += metricstest.Values(t, registry)["intents_core_access_decisions_total "+how+" keys-account"]
	}
	return n
}

func fallbacks(t *testing.T, registries []*prometheus.Registry) float64 {
	t.Helper()
	return decided(t, "fallback_allowed", registries...) + decided(t, "fallback_refused", registries...)
}

// What one core counts the others know; while Redis is away each counts alone, and says so once.
func TestLimits_SharedByCores(t *testing.T) {
	t.Parallel()
	redis, store := startRedis(t), pgtest.New(t)
	cores, registries, logs := newCores(t, 2, store, topology.Single, redis.URL, generous)
	equal(t, "keys of two cores", madeKeys(t, 20, newOwner(t, store), cores...), 5)
	equal(t, "keys counted by both", decided(t, "allowed", registries...), 5)
	for i := range cores {
		if metricstest.Values(t, registries[i])["intents_core_access_redis_failures_total"] != 0 || logs[i].Len() > 0 {
			t.Errorf("with Redis: %s", &logs[i])
		}
	}

	ok(t, redis.Stop())
	owner := newOwner(t, store)
	for i, core := range cores {
		equal(t, "keys of a core alone", madeKeys(t, 20, owner, core), 5)
		equal(t, "allowed alone", decided(t, "fallback_allowed", registries[i]), 5)
		equal(t, "refused alone", decided(t, "fallback_refused", registries[i]), 15)
		if metricstest.Values(t, registries[i])["intents_core_access_redis_failures_total"] == 0 || strings.Count(logs[i].String(), "\n") != 1 {
			t.Errorf("no failure is counted, or the log is not one line:\n%s", &logs[i])
		}
	}

	ok(t, redis.Restart(t.Context()))
	for _, core := range cores {
		awaitRedis(t, core)
	}
	equal(t, "keys of two cores with Redis again", madeKeys(t, 20, newOwner(t, store), cores...), 5)
}

// awaitRedis waits until a core uses Redis.
func awaitRedis(t *testing.T, core *identity.Service) {
	t.Helper()
	asynctest.Eventually(t, "Redis is used again", func() bool {
		return core.Keys.RateLimits(t.Context(), &account.Key{Environment: network.Test, LimitBucket: uuid.New(), Limit: account.DefaultLimit})[0].Known
	})
}

// A Redis that takes connections and says nothing holds clients up now and then, not each of them.
func TestLimits_RedisHangs(t *testing.T) {
	t.Parallel()
	redis := faultproxy.Silent(t)
	core := newService(t, countingIn(t, "redis://"+redis.Address+"/0", 50*time.Millisecond))
	began := time.Now()
	for range 50 {
		ok(t, call(core.Persons.WalletNonce(t.Context(), identity.Client{IP: "203.0.113.7"})))
	}
	if most := 2 + int(time.Since(began)/time.Second); redis.Passed() > most {
		t.Errorf("%d dials in %s", redis.Passed(), time.Since(began))
	}
}

// Somebody who leaves is not taken for a fault of Redis, and spends nothing here.
func TestLimits_RequestCanceled(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	core := newService(t, countingIn(t, startRedis(t).URL, generous), func(c *identity.Config) { c.Metrics = registry })
	gone, leave := context.WithCancel(t.Context())
	leave()
	is(t, "a client that has left", call(core.Persons.WalletNonce(gone, identity.Client{})), context.Canceled)
	for name, n := range metricstest.Values(t, registry) {
		if n != 0 {
			t.Errorf("counted %g %s", n, name)
		}
	}
}

// Cores count together on a Cluster. While one of its nodes is down, they count alone only what is kept there.
func TestLimits_SharedOnCluster(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	cores, registries, _ := newCores(t, 3, store, topology.Cluster, c.URL, time.Second)
	nodeOf := func(owner uuid.UUID) *topologytest.Node {
		return c.Owner(c.Slot("rate:keys-account:" + owner.String()))
	}
	owners := map[bool][]uuid.UUID{}
	for len(owners[true]) < 2 || len(owners[false]) < 4 {
		owner := newOwner(t, store)
		onLast := nodeOf(owner) == c.Masters[2]
		owners[onLast] = append(owners[onLast], owner)
	}
	for _, owner := range owners[false][:2] {
		equal(t, "keys of three cores", madeKeys(t, 20, owner, cores...), 5)
	}
	equal(t, "tries counted alone", fallbacks(t, registries), 0)

	c.Masters[2].Kill()
	alone := madeKeys(t, 60, owners[true][0], cores...)
	if alone < 5 || alone > 15 {
		t.Errorf("three cores, each alone, let %d keys through, want 5 to 15", alone)
	}
	before := fallbacks(t, registries)
	if before == 0 {
		t.Error("a node is down, and nothing was counted alone: this shows nothing")
	}
	for _, owner := range owners[false][2:4] {
		equal(t, "keys of with a node down elsewhere, three cores", madeKeys(t, 20, owner, cores...), 5)
	}
	equal(t, "tries counted alone", fallbacks(t, registries), before)
}

// Cores count together on the master that Sentinels name, and go on after it was replaced.
func TestLimits_SharedBehindSentinels(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	all := topologytest.StartSentinels(t, 1, topologytest.Security{})
	cores, registries, _ := newCores(t, 3, store, topology.Sentinel, all.URL, time.Second)
	equal(t, "keys of three cores", madeKeys(t, 20, newOwner(t, store), cores...), 5)
	equal(t, "tries counted alone", fallbacks(t, registries), 0)
	died := time.Now()
	all.Master.Kill()
	asynctest.Eventually(t, "the replica is the master", func() bool { return all.Named() == all.Replicas[0].Address })
	named := time.Now()
	for _, core := range cores {
		awaitRedis(t, core)
	}
	t.Logf("another master after %s, in use %s later", named.Sub(died), time.Since(named))
	equal(t, "keys of on the new master, three cores", madeKeys(t, 20, newOwner(t, store), cores...), 5)
}

// A password whose turn does not come is seen waiting, and counted when it is refused.
func TestMetrics_Passwords(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	core := newService(t, func(c *identity.Config) {
		c.Metrics, c.Passwords = registry, &account.Passwords{} // it has no turn to give
	})
	refused := make(chan error, 1)
	go func() {
		_, err := core.Persons.SignIn(t.Context(), identity.Client{}, "ann@example.com", password)
		refused <- err
	}()
	var err error
	waited := false
	for left := false; !left; {
		select {
		case err = <-refused:
			left = true
		case <-time.After(5 * time.Millisecond):
			waited = waited || metricstest.Values(t, registry)["intents_core_passwords_waiting"] == 1
		}
	}
	if !errors.Is(err, identity.ErrBusy) || !waited {
		t.Errorf("%v, seen waiting: %v; want ErrBusy after a wait", err, waited)
	}
	got := metricstest.Values(t, registry)
	if got["intents_core_passwords_waiting"] != 0 || got["intents_core_passwords_refused_total"] != 1 || got["intents_core_password_duration_seconds count"] != 1 {
		t.Errorf("counted %v", got)
	}
}
