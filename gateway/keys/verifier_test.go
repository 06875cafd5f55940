package keys_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/wire"
)

type verifier struct {
	*keys.Verifier
	registry *prometheus.Registry
}

// start runs a verifier against the core until the test ends, and waits until it follows the change feed.
func start(t *testing.T, core *coretest.Core) verifier {
	t.Helper()
	return startBefore(t, []*url.URL{core.URL})
}

func startBefore(t *testing.T, cores []*url.URL, changes ...func(*keys.Options)) verifier {
	t.Helper()
	registry := prometheus.NewRegistry()
	options := keys.Options{
		Core:          control.New(coretest.Upstream(t, coretest.Options(cores...))),
		Capacity:      1000,
		TTL:           time.Minute,
		UnknownTTL:    time.Minute,
		LookUpTimeout: 10 * time.Second, // a busy machine stands still for a second now and then
		LookUps:       64,
		Log:           slog.New(slog.DiscardHandler),
		Metrics:       registry,
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
	})
	asynctest.Eventually(t, "the change feed is followed", func() bool { return v.Ready(ctx) == nil })
	return v
}

// counted reads one counter.
func (v verifier) counted(t *testing.T, name string) float64 {
	t.Helper()
	return metricstest.Sum(t, v.registry, name)
}

// awaitChanges waits until the feed has told of n changes.
func (v verifier) awaitChanges(t *testing.T, n float64) {
	t.Helper()
	asynctest.Eventually(t, "the feed told of the changes", func() bool { return v.counted(t, "intents_gateway_key_changes_total") == n })
}

func (v verifier) refused(key apikey.Key) bool {
	_, err := v.Verify(key.Hash())
	return errors.Is(err, keys.ErrRefused) || errors.Is(err, keys.ErrUnknown)
}

// awaitFilter waits until the filter is loaded, with this key in it.
func (v verifier) awaitFilter(t *testing.T, key apikey.Key) {
	t.Helper()
	asynctest.Eventually(t, "the filter is loaded", func() bool { return v.InFilter(key.Hash()) })
}

func (v verifier) mustAccept(t *testing.T, key apikey.Key) *keys.Verdict {
	t.Helper()
	verdict, err := v.Verify(key.Hash())
	if err != nil {
		t.Fatalf("a usable key: %v", err)
	}
	return verdict
}

func TestVerdict_Fields(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	type said struct {
		KeyID, AccountID string
		Environment      network.Environment
		Limit, Account   tokenbucket.Bucket
	}
	for _, test := range []struct {
		environment network.Environment
		core        wire.VerifiedKey
		want        said
	}{
		{
			network.Test,
			wire.VerifiedKey{KeyID: "the-key", AccountID: "the-account", Limit: wire.KeyLimit{Requests: 7, PeriodSeconds: 10}},
			said{
				"the-key", "the-account", network.Test,
				tokenbucket.Bucket{Name: "key:the-key", Rule: tokenbucket.Per(7, 10*time.Second)},
				tokenbucket.Bucket{Name: "account:test:the-account", Rule: tokenbucket.Per(140, 10*time.Second)},
			},
		},
		{ // of a rotation
			network.Live,
			wire.VerifiedKey{
				KeyID: "second", AccountID: "the-account", LimitBucket: "first", AccountLimit: wire.KeyLimit{Requests: 9, PeriodSeconds: 60},
			},
			said{
				"second", "the-account", network.Live,
				tokenbucket.Bucket{Name: "key:first", Rule: tokenbucket.Per(50, time.Minute)},
				tokenbucket.Bucket{Name: "account:live:the-account", Rule: tokenbucket.Per(9, time.Minute)},
			},
		},
	} {
		key := apikey.New(test.environment)
		core.Put(key, test.core)
		got := v.mustAccept(t, key)
		if diff := cmp.Diff(test.want, said{got.KeyID(), got.AccountID(), got.Environment(), got.Limit(), got.AccountLimit()}); diff != "" {
			t.Error(diff)
		}
	}
}

func TestVerifier_SharedLookUp(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.FilterDown.Store(true) // so that unknown keys are looked up, too
	v := start(t, core)
	usable, unknown := core.AddKey(network.Live), apikey.New(network.Live)
	v.awaitChanges(t, 1)
	release := make(chan struct{})
	core.BeforeVerdict = func() { <-release }

	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if _, err := v.Verify(usable.Hash()); err != nil {
				t.Error(err)
			}
		})
		asking.Go(func() {
			if !v.refused(unknown) {
				t.Error("an unknown key was not refused")
			}
		})
	}
	asynctest.Eventually(t, "all have asked", func() bool { return v.counted(t, "intents_gateway_key_verdicts_total") == 100 })
	asynctest.Eventually(t, "both look-ups are in flight", func() bool { return core.LookUps.Load() >= 2 })
	close(release)
	asking.Wait()
	if got := core.LookUps.Load(); got != 2 {
		t.Errorf("%d look-ups for two keys", got)
	}
	asynctest.Eventually(t, "core is not asked again while the feed is followed", func() bool {
		before := core.LookUps.Load()
		v.mustAccept(t, usable)
		return core.LookUps.Load() == before
	})
}

func TestVerifier_ExpiredKey(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	key := apikey.New(network.Test)
	ends := time.Now().Add(2500 * time.Millisecond)
	core.Put(key, wire.VerifiedKey{ExpiresAt: &ends})
	v.mustAccept(t, key)
	asynctest.Eventually(t, "the key is refused", func() bool {
		began := time.Now()
		_, err := v.Verify(key.Hash())
		if err == nil && !began.Before(ends) {
			t.Errorf("accepted %s after its end", began.Sub(ends))
		}
		return errors.Is(err, keys.ErrRefused)
	})
	if time.Now().Before(ends) {
		t.Error("refused before its end")
	}
}
