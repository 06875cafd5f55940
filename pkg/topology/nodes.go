package topology

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/telemetry"
)

// over is a canceled context: with it a Cluster's client returns its cached state and sends no command.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Node returns the address of the master that owns the key in a Cluster. It is empty if that is not known yet, and for other
// clients. It sends no command.
func Node(client redis.UniversalClient, key string) string {
	cluster, is := client.(*redis.ClusterClient)
	if !is {
		return ""
	}
	master, err := cluster.MasterForKey(over, key)
	if err != nil {
		return ""
	}
	return master.Options().Addr
}

// Reload makes a Cluster's client reload the slot map, in the background and at most five times a second. A caller calls it after
// it lost a node, because a replica may have been promoted.
func Reload(client redis.UniversalClient) {
	if cluster, is := client.(*redis.ClusterClient); is {
		cluster.ReloadState(context.Background())
	}
}

var (
	errClusterState = errors.New("no master of the cluster says that it serves (cluster_state:ok)")
	errReplica      = errors.New("this Redis is a replica, which takes no writes (READONLY); have the URL lead to the master, or name the Sentinels")
	errFull         = errors.New("redis is full (OOM): its maxmemory is reached, and its policy evicts nothing; give it more memory")
)

// servingKey is written by Serving, and gone after a second.
const servingKey = "rate:serving"

// Serving returns nil if Redis takes writes. A Cluster does if any of its masters reports so.
func Serving(ctx context.Context, client redis.UniversalClient) error {
	cluster, is := client.(*redis.ClusterClient)
	if !is {
		switch err := client.Set(ctx, servingKey, 1, time.Second).Err(); {
		case redis.IsReadOnlyError(err):
			return errReplica
		case redis.IsOOMError(err):
			return errFull
		default:
			return err
		}
	}
	var serving atomic.Bool
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		info, err := master.ClusterInfo(ctx).Result()
		if strings.Contains(info, "cluster_state:ok") {
			serving.Store(true)
		}
		return err
	})
	switch {
	case serving.Load():
		return nil
	case err != nil:
		return err
	default:
		return errClusterState
	}
}

// Pool returns the metrics of a client's connections, for a registry; for a Cluster, of those to all known nodes.
func Pool(service string, client redis.UniversalClient) prometheus.Collector {
	limit := func() int { return 0 }
	switch client := client.(type) {
	case *redis.Client:
		limit = func() int { return client.Options().MaxActiveConns }
	case *redis.ClusterClient:
		nodes := new(atomic.Int64)
		client.OnNewNode(func(node *redis.Client) {
			nodes.Add(1)
			// go-redis has no hook for the end of a node.
			runtime.AddCleanup(node, func(nodes *atomic.Int64) { nodes.Add(-1) }, nodes)
		})
		limit = func() int { return int(nodes.Load()) * client.Options().MaxActiveConns }
	}
	return telemetry.Pool(service, "redis", func() telemetry.PoolState {
		if cluster, is := client.(*redis.ClusterClient); is && Node(cluster, "") == "" {
			return telemetry.PoolState{} // the nodes are not known yet, and reading must not block on them
		}
		stats := client.PoolStats()
		return telemetry.PoolState{
			Limit: limit(), Open: int(stats.TotalConns), InUse: int(stats.TotalConns) - int(stats.IdleConns),
			Waits: uint64(stats.WaitCount), TimedOut: uint64(stats.Timeouts),
		}
	})
}
