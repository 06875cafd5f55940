package watch_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/screening"
	"intents.internal/core/watch"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/metricstest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	// confirmations is the depth of both chains.
	confirmations = 3
)

var (
	sepolia     = caip.EIP155Chain(11155111)
	baseSepolia = caip.EIP155Chain(84532)
)

// world is two chains with their providers, a database and a watcher whose polls the test makes one by one.
type world struct {
	*testing.T
	store   *rooms.Rooms
	live    *registry.LiveRegistry
	watcher *watch.Watcher
	metrics *prometheus.Registry
	chains  map[caip.ChainID]*rpctest.Chain
	// nodes are each chain's providers in their order.
	nodes map[caip.ChainID][]*rpctest.Node
	loops map[caip.ChainID]watch.Loop
	owner uuid.UUID
	nonce uint64
	// timeout bounds a request to a provider; 0 means two seconds.
	timeout time.Duration
	// urls are how many URLs each provider has; 0 means one.
	urls int
	// screen has a list, nil for none.
	screen *screening.Screen
}

// newWorld has so many providers for each chain. The chains have 20 blocks that have been read.
func newWorld(t *testing.T, providers int) *world {
	t.Helper()
	w := &world{
		T: t, store: pgtest.New(t), metrics: prometheus.NewRegistry(), owner: uuid.New(),
		chains: map[caip.ChainID]*rpctest.Chain{}, nodes: map[caip.ChainID][]*rpctest.Node{}, loops: map[caip.ChainID]watch.Loop{},
	}
	pgtest.LoadRegistry(t, w.store)
	pgtest.Exec(t, w.store, fmt.Sprintf("UPDATE chains SET confirmations = %d, block_time_ms = 100", confirmations))
	var err error
	if w.live, err = registry.NewLiveRegistry(t.Context(), w.store.Registry); err != nil {
		t.Fatal(err)
	}
	for _, id := range []caip.ChainID{sepolia, baseSepolia} {
		number, _ := id.Number()
		c := rpctest.NewChain(number)
		c.SetTime(time.Now().Add(-20 * time.Second))
		c.SetPeriod(10 * time.Millisecond) // a thousand blocks are not after the machine's clock
		c.MineEmpty(19)
		definition, _ := w.live.Current().Chain(id)
		for _, s := range definition.Settlements {
			c.SetSettler(common.HexToAddress(s.InputSettler))
			c.SetSettler(common.HexToAddress(s.OutputSettler))
		}
		w.chains[id] = c
		for range providers {
			w.nodes[id] = append(w.nodes[id], rpctest.NewNode(c))
		}
	}
	w.connect()
	for id := range w.chains {
		w.follow(id)
		w.tick(id)
	}
	return w
}

// connect starts a new watcher, which has asked no provider anything.
func (w *world) connect() {
	w.Helper()
	endpoints := rpc.Providers{}
	var all []*rpctest.Node
	for id, nodes := range w.nodes {
		for _, node := range nodes {
			all = append(all, node)
			for n := range max(w.urls, 1) {
				url := fmt.Sprintf("%s/%d", node.URL(), n)
				endpoints[id] = append(endpoints[id], rpc.Endpoint{URL: telemetry.Secret(url), RequestsPerSecond: 100000})
			}
		}
	}
	client, err := rpc.NewClient(endpoints, rpc.Options{Transport: rpctest.Transport(all...), Timeout: cmp.Or(w.timeout, 2*time.Second)})
	if err != nil {
		w.Fatal(err)
	}
	w.metrics = prometheus.NewRegistry()
	w.watcher = watch.New(watch.Config{
		Store: w.store.Intents, Watched: w.store.Watched, Registry: w.live, Client: client, Log: slog.New(slog.DiscardHandler), Metrics: w.metrics,
		Tick: 100 * time.Millisecond, Screening: w.screen,
	})
}

// follow takes the chain's lease, from the loop before if there is one.
func (w *world) follow(id caip.ChainID) {
	w.Helper()
	pgtest.Exec(w.T, w.store, "UPDATE watched_chains SET lease_until = '-infinity' WHERE chain_id = '"+id.String()+"'")
	loop, err := w.watcher.Follow(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	w.loops[id] = loop
}

// tick polls a chain until all its blocks are read.
func (w *world) tick(id caip.ChainID) {
	w.Helper()
	for again := true; again; {
		var err error
		if again, err = w.loops[id].Tick(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

// fault changes what is wrong with a provider of Sepolia.
func (w *world) fault(provider int, change func(*rpctest.Faults)) {
	w.nodes[sepolia][provider].Set(change)
}

// mine mines a block of the chain and polls it.
func (w *world) mine(id caip.ChainID, txs ...rpctest.Tx) {
	w.Helper()
	w.chains[id].Mine(txs...)
	w.tick(id)
}

// deepen mines so many empty blocks, each with a poll at it.
func (w *world) deepen(id caip.ChainID, blocks int) {
	w.Helper()
	for range blocks {
		w.mine(id)
	}
}

// count is the sum of a metric.
func (w *world) count(name string) float64 {
	w.Helper()
	return metricstest.Sum(w, w.metrics, name)
}
