package topology

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
)

// serverInfo is what one server answers to INFO.
type serverInfo struct {
	address string
	fields  map[string]string
}

// servers asks the server, or every master of a Cluster. Those that do not answer are left out.
func servers(ctx context.Context, client redis.UniversalClient, sections ...string) (all []serverInfo) {
	var mu sync.Mutex
	ask := func(ctx context.Context, address string, server redis.Cmdable) {
		info, err := server.Info(ctx, sections...).Result()
		if err != nil {
			return
		}
		fields := map[string]string{}
		for line := range strings.SplitSeq(info, "\r\n") {
			if name, value, found := strings.Cut(line, ":"); found {
				fields[name] = value
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, serverInfo{address, fields})
	}
	if cluster, is := client.(*redis.ClusterClient); is {
		_ = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			ask(ctx, master.Options().Addr, master)
			return nil
		})
	} else {
		ask(ctx, "", client)
	}
	return all
}

// Memory has the metrics of the memory of Redis. It is for one goroutine.
type Memory struct {
	used    prometheus.Gauge
	evicted prometheus.Counter
	// last has how many keys each server had evicted.
	last map[string]float64
}

// NewMemory registers the metrics, whose names begin with those of this service.
func NewMemory(service string, registry prometheus.Registerer) *Memory {
	factory := promauto.With(registry)
	return &Memory{
		last: map[string]float64{},
		used: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_" + service + "_redis_memory_used_ratio",
			Help: "Memory of Redis in use, as a share of its maxmemory; of the fullest master of a Cluster, and 0 without a maxmemory. At 1 it evicts " +
				"buckets of limits, or takes none.",
		}),
		evicted: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_" + service + "_redis_evicted_keys_total",
			Help: "Keys that Redis has evicted for want of memory since this process began to look. A rise means that limits are forgotten, and keys get more " +
				"than theirs. Take the maximum over instances.",
		}),
	}
}

// Read updates the metrics. A server that does not answer leaves what is known of it.
func (m *Memory) Read(ctx context.Context, client redis.UniversalClient) {
	all := servers(ctx, client)
	used := 0.0
	for _, server := range all {
		number := func(field string) float64 {
			value, _ := strconv.ParseFloat(server.fields[field], 64)
			return value
		}
		if most := number("maxmemory"); most > 0 {
			used = max(used, number("used_memory")/most)
		}
		evicted := number("evicted_keys")
		if before, known := m.last[server.address]; known {
			m.evicted.Add(max(0, evicted-before))
		}
		m.last[server.address] = evicted
	}
	if len(all) > 0 {
		m.used.Set(used)
	}
}
