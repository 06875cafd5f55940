package topology_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// certificate is what the servers of these tests show.
var certificate *topologytest.Certificate

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // most of these tests wait for other processes; -parallel overrides it
	dir, err := os.MkdirTemp("", "intents-topology-")
	if err == nil {
		certificate, err = topologytest.NewCertificate(dir)
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", certificate.Authority) // before anything reads the system's authorities
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func open(t *testing.T, mode topology.Mode, url string) redis.UniversalClient {
	t.Helper()
	return openWith(t, mode, url, bounds)
}

func openWith(t *testing.T, mode topology.Mode, url string, o topology.Options) redis.UniversalClient {
	t.Helper()
	client, err := topology.New(mode, url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Passwords, of Sentinels too, and TLS work; without them nothing does.
func TestNew_PasswordsAndTLS(t *testing.T) {
	t.Parallel()
	secure := topologytest.Security{Password: "hunter2", SentinelPassword: "hunter3", TLS: certificate}
	servers := map[topology.Mode]string{}
	var mu sync.Mutex
	t.Run("servers", func(t *testing.T) {
		note := func(mode topology.Mode, url string) {
			mu.Lock()
			defer mu.Unlock()
			servers[mode] = url
		}
		cluster := topologytest.StartCluster(t, 3, 0, secure)
		note(topology.Cluster, cluster.URL)
		sentinels := topologytest.StartSentinels(t, 1, secure)
		note(topology.Sentinel, sentinels.URL)
		note(topology.Single, "rediss://:hunter2@"+sentinels.Master.Address+"/0")
		for mode, url := range servers {
			client := open(t, mode, url)
			for i := range 20 { // on all nodes
				key := fmt.Sprint("key ", i)
				if err := client.Set(t.Context(), key, i, 0).Err(); err != nil {
					t.Fatalf("%s: %v", mode, err)
				}
				if got, err := client.Get(t.Context(), key).Int(); err != nil || got != i {
					t.Fatalf("%s: %d, %v", mode, got, err)
				}
			}
			if err := topology.Serving(t.Context(), client); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
			for what, other := range map[string]string{
				"another password": strings.Replace(url, "hunter2", "hunter4", 1), "no TLS": strings.Replace(url, "rediss:", "redis:", 1),
				"another password of the sentinels": strings.Replace(url, "hunter3", "hunter4", 1),
			} {
				if other == url {
					continue
				}
				if err := topology.Serving(t.Context(), open(t, mode, other)); err == nil {
					t.Errorf("%s with %s: served", mode, what)
				}
			}
		}
	})
}

// A Cluster serves as long as one of its masters does; what is known of its nodes is told without asking.
func TestServing_Cluster(t *testing.T) {
	t.Parallel()
	cluster := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	brief := bounds
	brief.Timeout = time.Second // for each question to a master that is paused
	client := openWith(t, topology.Cluster, cluster.URL, brief)
	registry := prometheus.NewRegistry()
	registry.MustRegister(topology.Pool("test", client))
	if node, pool := topology.Node(client, "key"), metricstest.Values(t, registry); node != "" || pool["intents_test_pool_connections_open redis"] != 0 {
		t.Errorf("before the first call: %q, %v", node, pool)
	}
	if err := topology.Serving(t.Context(), client); err != nil {
		t.Error(err)
	}
	for i := range 100 {
		key := fmt.Sprint("key ", i)
		if got, want := topology.Node(client, key), cluster.Owner(cluster.Slot(key)).Address; got != want {
			t.Fatalf("%s is on %s, want %s", key, got, want)
		}
	}
	want := map[string]float64{
		"intents_test_pool_connections_limit redis": 12, "intents_test_pool_connections_open redis": 3, "intents_test_pool_connections_in_use redis": 0,
		"intents_test_pool_waits_total redis": 0, "intents_test_pool_timeouts_total redis": 0,
	}
	if diff := cmp.Diff(want, metricstest.Values(t, registry)); diff != "" {
		t.Error(diff)
	}
	cluster.Masters[0].Kill()
	for range 5 {
		if err := topology.Serving(t.Context(), client); err != nil {
			t.Errorf("with two of three: %v", err)
		}
	}
	cluster.Masters[1].Pause()
	defer cluster.Masters[1].Resume()
	asynctest.Eventually(t, "a minority serves no more", func() bool { return topology.Serving(t.Context(), client) != nil })
	cluster.Masters[1].Resume()
	asynctest.Eventually(t, "two of three serve", func() bool { return topology.Serving(t.Context(), client) == nil })
}

// incr is a script of which a second execution shows.
var incr = redis.NewScript(`return redis.call("INCR", KEYS[1])`)

// A script follows its slot to another node, also while that moves, and is executed once for each call.
func TestAtMostOnce_SlotMoves(t *testing.T) {
	t.Parallel()
	cluster := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	client := topology.AtMostOnce{UniversalClient: open(t, topology.Cluster, cluster.URL)}
	const key = "counter"
	slot := cluster.Slot(key)
	from, to := cluster.Owner(slot), cluster.Masters[0]
	if to == from {
		to = cluster.Masters[1]
	}
	called := 0
	call := func() {
		t.Helper()
		for range 10 {
			called++
			if got, err := incr.Run(t.Context(), client, []string{key}).Int(); err != nil || got != called {
				t.Fatalf("call %d: %d, %v", called, got, err)
			}
		}
	}
	call()
	cluster.Begin(slot, from, to)
	call() // the key is still there
	cluster.Carry(slot, from, to)
	call() // ASK
	cluster.Finish(slot, from, to)
	call() // MOVED, for a moment
	asynctest.Eventually(t, "the client knows where the slot is", func() bool { return topology.Node(client.UniversalClient, key) == to.Address })
	call()
}

// A connection that is lost after a script was sent costs an error, never a second execution.
func TestAtMostOnce_LostReply(t *testing.T) {
	t.Parallel()
	cluster := topologytest.StartCluster(t, 1, 0, topologytest.Security{})
	master := cluster.Masters[0]
	proxy := faultproxy.Start(t, master.Address)
	master.Do("CONFIG", "SET", "cluster-announce-port", proxy.Port)
	client := topology.AtMostOnce{UniversalClient: open(t, topology.Cluster, cluster.URL)}
	run := func() error { return incr.Run(t.Context(), client, []string{"counter"}).Err() }
	if err := run(); err != nil {
		t.Fatal(err)
	}
	const cut = 20
	for range cut {
		proxy.LoseReply(topologytest.IsScript)
		if run() == nil {
			t.Error("a reply came that was cut off")
		}
	}
	if got, err := master.Client.Get(t.Context(), "counter").Int(); err != nil || got != 1+cut {
		t.Errorf("executed %d times for %d calls, %v", got, 1+cut, err)
	}
	if proxy.Lost() != cut {
		t.Errorf("%d replies were cut off, want %d: this test shows nothing", proxy.Lost(), cut)
	}
}

// A Sentinel that hangs is left for the others, whether it was in use or is met at the start.
func TestSentinel_Hangs(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]topology.Options{
		"little time":          {DialTimeout: 100 * time.Millisecond, Timeout: 60 * time.Millisecond, PoolTimeout: 20 * time.Millisecond, Conns: 4},
		"as much for all":      {DialTimeout: 250 * time.Millisecond, Timeout: 250 * time.Millisecond, PoolTimeout: 250 * time.Millisecond, Conns: 4},
		"less for connections": {DialTimeout: 100 * time.Millisecond, Timeout: 200 * time.Millisecond, PoolTimeout: 250 * time.Millisecond, Conns: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := topologytest.StartSentinels(t, 1, topologytest.Security{})
			start := func() (works func() bool) {
				client, err := topology.New(topology.Sentinel, all.URL, options)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				return func() bool {
					return incr.Run(t.Context(), topology.AtMostOnce{UniversalClient: client}, []string{"counter"}).Err() == nil
				}
			}
			works := start()
			asynctest.Eventually(t, "Redis answers", works)
			// The one that is listened to is the one in use.
			var hung, other *topologytest.Node
			asynctest.Eventually(t, "a Sentinel is in use", func() bool {
				for i, n := range all.Nodes {
					if clients, _ := n.Do("CLIENT", "LIST").(string); strings.Contains(clients, " sub=2 ") {
						hung, other = n, all.Nodes[(i+1)%len(all.Nodes)]
					}
				}
				return hung != nil
			})
			hung.Pause()
			defer hung.Resume()
			asynctest.Eventually(t, "Redis answers a client that starts now", start())
			all.Master.Kill()
			asynctest.Eventually(t, "the others name the replica", func() bool {
				return strings.Contains(other.Info("sentinel", "master0"), "address="+all.Replicas[0].Address)
			})
			named := time.Now()
			asynctest.Eventually(t, "the replica answers", works)
			t.Logf("found %s after it was named", time.Since(named))
		})
	}
}
