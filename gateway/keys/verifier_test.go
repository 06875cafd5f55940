package keys_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/gateway/cores"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/embedded"
	"intents.internal/pkg/network"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/wire"
)

var (
	redisURL string
	someone  = netip.MustParseAddr("192.0.2.1")
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	r, err := embedded.StartRedis(context.Background(), embedded.RedisConfig{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.Stop() //nolint:errcheck // the tests are over
	redisURL = r.URL
	return m.Run()
}

type verifier struct {
	*keys.Verifier
	registry *prometheus.Registry
}

// start runs a verifier against the core until the test ends, and waits until it follows the change feed.
func start(t *testing.T, core *coretest.Core, budget int) verifier {
	t.Helper()
	return startBefore(t, coretest.Set(t, core.URL), budget)
}

func startBefore(t *testing.T, set *cores.Set, budget int, changes ...func(*keys.Options)) verifier {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	client, err := limit.NewRedis(topology.Single, redisURL, 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	limiter := limit.New(limit.Options{
		Redis: client, Budget: 5 * time.Second, Fallback: limit.Closed, Capacity: 1000, Log: log, Metrics: registry,
	})
	options := keys.Options{
		Core:             control.New(set, coretest.Secret, 64),
		Limiter:          limiter,
		Capacity:         1000,
		TTL:              time.Minute,
		UnknownTTL:       time.Minute,
		UnknownPerMinute: budget,
		LookUpTimeout:    10 * time.Second, // a busy machine stands still for a second now and then
		LookUps:          64,
		Log:              log,
		Metrics:          registry,
	}
	for _, change := range changes {
		change(&options)
	}
	v := verifier{registry: registry, Verifier: keys.New(options)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { v.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		v.Close()
		limiter.Close()
		_ = client.Close()
	})
	eventually(t, "the change feed is followed", func() bool { return v.Ready(ctx) == nil })
	return v
}

// eventually waits up to 20 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("not within 20 s: %s", what)
		}
		<-ticker.C
	}
}

// counted reads one counter.
func (v verifier) counted(t *testing.T, name string) float64 {
	t.Helper()
	families, err := v.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// awaitChanges waits until the feed has told of n changes.
func (v verifier) awaitChanges(t *testing.T, n float64) {
	t.Helper()
	eventually(t, "the feed told of the changes", func() bool { return v.counted(t, "gateway_key_changes_total") == n })
}

func (v verifier) refused(key apikey.Key) bool {
	_, err := v.Verify(key.Hash(), someone)
	return errors.Is(err, keys.ErrRefused)
}

func (v verifier) mustAccept(t *testing.T, key apikey.Key) *keys.Verdict {
	t.Helper()
	verdict, err := v.Verify(key.Hash(), someone)
	if err != nil {
		t.Fatalf("a usable key: %v", err)
	}
	return verdict
}

func TestVerdictSaysWhoseKeyItIs(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
	type said struct {
		KeyID, AccountID, Bucket string
		Environment              network.Environment
		Rule                     redis_rate.Limit
	}
	for _, test := range []struct {
		environment network.Environment
		core        wire.VerifiedKey
		want        said
	}{
		{
			network.Test,
			wire.VerifiedKey{KeyID: "the-key", AccountID: "the-account", Limit: wire.KeyLimit{Requests: 7, PeriodSeconds: 10}},
			said{"the-key", "the-account", "key:the-key", network.Test, redis_rate.Limit{Rate: 7, Burst: 7, Period: 10 * time.Second}},
		},
		{ // of a rotation
			network.Live,
			wire.VerifiedKey{KeyID: "second", AccountID: "the-account", LimitBucket: "first"},
			said{"second", "the-account", "key:first", network.Live, redis_rate.PerMinute(50)},
		},
	} {
		key := apikey.New(test.environment)
		core.Put(key, test.core)
		got := v.mustAccept(t, key)
		if diff := cmp.Diff(test.want, said{got.KeyID(), got.AccountID, got.Bucket, got.Environment(), got.Rule()}); diff != "" {
			t.Error(diff)
		}
	}
}

func TestVerdictsAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
	usable, unknown := core.AddKey(network.Live), apikey.New(network.Live)
	v.awaitChanges(t, 1)
	release := make(chan struct{})
	core.BeforeVerdict = func() { <-release }

	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if _, err := v.Verify(usable.Hash(), someone); err != nil {
				t.Error(err)
			}
		})
		asking.Go(func() {
			if !v.refused(unknown) {
				t.Error("an unknown key was not refused")
			}
		})
	}
	eventually(t, "all have asked", func() bool { return v.counted(t, "gateway_key_verdicts_total") == 100 })
	eventually(t, "both look-ups are under way", func() bool { return core.LookUps.Load() >= 2 })
	close(release)
	asking.Wait()
	if got := core.LookUps.Load(); got != 2 {
		t.Errorf("%d look-ups for two keys", got)
	}
	eventually(t, "core is not asked again while the feed is followed", func() bool {
		before := core.LookUps.Load()
		v.mustAccept(t, usable)
		return core.LookUps.Load() == before
	})
}

func TestKeysEndWhenTheyExpire(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
	key := apikey.New(network.Test)
	ends := time.Now().Add(2500 * time.Millisecond)
	core.Put(key, wire.VerifiedKey{ExpiresAt: &ends})
	v.mustAccept(t, key)
	eventually(t, "the key is refused", func() bool {
		began := time.Now()
		_, err := v.Verify(key.Hash(), someone)
		if err == nil && !began.Before(ends) {
			t.Errorf("accepted %s after its end", began.Sub(ends))
		}
		return errors.Is(err, keys.ErrRefused)
	})
	if time.Now().Before(ends) {
		t.Error("refused before its end")
	}
}

func TestUnknownKeysHaveABudgetPerAddress(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 3)
	known := core.AddKey(network.Test)
	fresh := core.AddKey(network.Test)
	v.awaitChanges(t, 2)
	network64 := fmt.Sprintf("2001:db8:%x:%x:", rand.N(1<<16), rand.N(1<<16)) // a bucket nobody has used yet
	prober := netip.MustParseAddr(network64 + ":1")
	sameNetwork := netip.MustParseAddr(network64 + "ffff::9")
	if _, err := v.Verify(known.Hash(), prober); err != nil {
		t.Fatal(err)
	}
	var results []string
	for range 6 {
		_, err := v.Verify(apikey.New(network.Test).Hash(), prober)
		var over keys.BudgetError
		switch {
		case errors.Is(err, keys.ErrRefused):
			results = append(results, "refused")
		case errors.As(err, &over) && over.RetryAfter > 0 && over.RetryAfter <= 20*time.Second:
			results = append(results, "over budget")
		default:
			t.Fatal(err)
		}
	}
	want := []string{"refused", "refused", "refused", "over budget", "over budget", "over budget"}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
	var over keys.BudgetError
	if _, err := v.Verify(apikey.New(network.Test).Hash(), sameNetwork); !errors.As(err, &over) {
		t.Errorf("a neighbour in the same /64 is not held to the budget: %v", err)
	}
	if _, err := v.Verify(known.Hash(), prober); err != nil {
		t.Errorf("a key with a verdict is held to the budget: %v", err)
	}
	if _, err := v.Verify(fresh.Hash(), someone); err != nil {
		t.Errorf("another address is held to the budget: %v", err)
	}
}
