package topology_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// Each policy that evicts what has no TTL is told of, on one server and on each master of a Cluster.
func TestCheckEviction(t *testing.T) {
	t.Parallel()
	sentinels := topologytest.StartSentinels(t, 0, topologytest.Security{})
	cluster := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	for mode, url := range map[topology.Mode]string{topology.Single: "redis://" + sentinels.Master.Address, topology.Cluster: cluster.URL} {
		client := open(t, mode, url)
		last := redis.NewClient(&redis.Options{Addr: sentinels.Master.Address})
		if mode == topology.Cluster {
			last = redis.NewClient(&redis.Options{Addr: cluster.Masters[2].Address})
		}
		defer last.Close()
		for policy, evicts := range map[string]bool{
			"noeviction": false, "volatile-lru": false, "volatile-ttl": false, "allkeys-lru": true, "allkeys-lfu": true, "allkeys-random": true,
		} {
			if err := last.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
				t.Fatal(err)
			}
			err := topology.CheckEviction(t.Context(), client)
			if (err != nil) != evicts || evicts && !strings.Contains(err.Error(), policy) {
				t.Errorf("%s with %s: %v", mode, policy, err)
			}
		}
		if err := last.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		topology.WarnOfEviction(t.Context(), client, slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(log.String(), "allkeys-lru") {
			t.Errorf("%s: the log has %q", mode, log.String())
		}
	}
}

// A Redis that answers and takes no writes is told of in words.
func TestServing_NoWrites(t *testing.T) {
	t.Parallel()
	sentinels := topologytest.StartSentinels(t, 1, topologytest.Security{})
	server := sentinels.Master
	client := open(t, topology.Single, "redis://"+server.Address)
	admin := redis.NewClient(&redis.Options{Addr: server.Address})
	defer admin.Close()
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := topology.Serving(t.Context(), client); err == nil || !strings.Contains(err.Error(), "full (OOM)") {
		t.Errorf("over maxmemory: %v", err)
	}
	replica := open(t, topology.Single, "redis://"+sentinels.Replicas[0].Address)
	if err := topology.Serving(t.Context(), replica); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("a replica: %v", err)
	}
}

// How full Redis is, and how many keys it evicts, is read of one server and of the fullest master of a Cluster.
func TestMemory(t *testing.T) {
	t.Parallel()
	sentinels := topologytest.StartSentinels(t, 0, topologytest.Security{})
	cluster := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	for mode, c := range map[topology.Mode]struct{ url, filled string }{
		topology.Single:  {"redis://" + sentinels.Master.Address, sentinels.Master.Address},
		topology.Cluster: {cluster.URL, cluster.Masters[2].Address},
	} {
		client := open(t, mode, c.url)
		admin := redis.NewClient(&redis.Options{Addr: c.filled})
		defer admin.Close()
		registry := prometheus.NewPedanticRegistry()
		memory := topology.NewMemory("core", registry)
		read := func() (used, evicted float64) {
			memory.Read(t.Context(), client)
			all := metricstest.Values(t, registry)
			return all["intents_core_redis_memory_used_ratio"], all["intents_core_redis_evicted_keys_total"]
		}
		if used, evicted := read(); used != 0 || evicted != 0 {
			t.Errorf("%s: without maxmemory %g is used, and %g keys were evicted", mode, used, evicted)
		}
		for setting, value := range map[string]string{"maxmemory": "8mb", "maxmemory-policy": "allkeys-lru"} {
			if err := admin.ConfigSet(t.Context(), setting, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 160 { // of which a third is on each master of the Cluster
			if err := client.Set(t.Context(), fmt.Sprint("filler", n), strings.Repeat("x", 1<<18), 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		used, evicted := read()
		if used < 0.5 || used > 1.5 || evicted < 10 {
			t.Errorf("%s: of 13 MiB or more in 8 MiB, %g is used, and %g keys were evicted", mode, used, evicted)
		}
	}
}
