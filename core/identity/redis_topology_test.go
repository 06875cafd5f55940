package identity_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// threeCores share their limits, five keys an hour, and are counted.
func threeCores(t *testing.T, store *postgres.Store, mode topology.Mode, url string) (cores []*identity.Service, counted []*prometheus.Registry) {
	t.Helper()
	for range 3 {
		registry := prometheus.NewRegistry()
		cores = append(cores, newServiceOn(t, store, countingOn(t, mode, url, time.Second), func(c *identity.Config) {
			c.Limits.KeysPerAccount = 5
			c.Metrics, c.Log = registry, slog.New(slog.NewJSONHandler(&bytes.Buffer{}, nil))
		}))
		counted = append(counted, registry)
	}
	return cores, counted
}

func fallbacks(t *testing.T, registries []*prometheus.Registry) (decided float64) {
	t.Helper()
	for _, registry := range registries {
		for name, n := range counters(t, registry) {
			if name == "intents_core_access_decisions_total fallback_allowed keys-account" || name == "intents_core_access_decisions_total fallback_refused keys-account" {
				decided += n
			}
		}
	}
	return decided
}

// Cores count together on a Cluster. While one of its nodes is down, they count alone only what is kept there.
func TestLimits_SharedOnCluster(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	cores, registries := threeCores(t, store, topology.Cluster, c.URL)
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
		if made := madeKeys(t, 20, owner, cores...); made != 5 {
			t.Errorf("three cores let %d keys through, want 5", made)
		}
	}
	if n := fallbacks(t, registries); n != 0 {
		t.Errorf("%g tries were counted alone", n)
	}

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
		if made := madeKeys(t, 20, owner, cores...); made != 5 {
			t.Errorf("with a node down elsewhere, three cores let %d keys through, want 5", made)
		}
	}
	if n := fallbacks(t, registries); n != before {
		t.Errorf("%g tries on other nodes were counted alone", n-before)
	}
}

// Cores count together on the master that Sentinels name, and go on after it was replaced.
func TestLimits_SharedBehindSentinels(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	all := topologytest.StartSentinels(t, 1, topologytest.Security{})
	cores, registries := threeCores(t, store, topology.Sentinel, all.URL)
	if made := madeKeys(t, 20, newOwner(t, store), cores...); made != 5 {
		t.Errorf("three cores let %d keys through, want 5", made)
	}
	if n := fallbacks(t, registries); n != 0 {
		t.Errorf("%g tries were counted alone", n)
	}
	died := time.Now()
	all.Master.Kill()
	asynctest.Eventually(t, "the replica is the master", func() bool { return all.Named() == all.Replicas[0].Address })
	named := time.Now()
	for _, core := range cores {
		awaitRedis(t, core)
	}
	t.Logf("another master after %s, in use %s later", named.Sub(died), time.Since(named))
	if made := madeKeys(t, 20, newOwner(t, store), cores...); made != 5 {
		t.Errorf("on the new master, three cores let %d keys through, want 5", made)
	}
}
