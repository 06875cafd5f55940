package faults_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// providerFault is what is wrong with the first provider of both chains of some bridges.
type providerFault struct {
	name string
	// others is how many good providers each chain has besides.
	others int
	// set breaks the provider, fork has it follow a fork of its own; neither for no fault.
	set  func(*rpctest.Faults)
	fork bool
	// always has the fault there from the start to the end.
	always bool
	// metric names the metric that tells the operator, and told reads it for the provider with these labels.
	metric string
	told   func(m metrics, chain, host string) bool

	bridges *bridges
}

func providerFaults() []*providerFault {
	failed := func(reason string) func(m metrics, chain, host string) bool {
		return func(m metrics, chain, host string) bool {
			n, _ := m.of("intents_core_rpc_errors_total", chain, host, `reason="`+reason+`"`)
			return n > 0
		}
	}
	counted := func(name string) func(m metrics, chain, host string) bool {
		return func(m metrics, chain, host string) bool { n, _ := m.of(name, chain, host); return n > 0 }
	}
	unavailable := func(m metrics, chain, host string) bool {
		up, ok := m.of("intents_core_rpc_available", chain, host)
		return ok && up == 0
	}
	return []*providerFault{
		{name: "none", others: 1},
		{
			name: "down", others: 1, set: func(f *rpctest.Faults) { f.Down = true },
			metric: `intents_core_rpc_errors_total{reason="transport"}`, told: failed("transport"),
		},
		{
			name: "2 s for each answer", others: 1, set: func(f *rpctest.Faults) { f.Delay = 2 * time.Second },
			metric: "intents_core_rpc_request_seconds", told: func(m metrics, chain, host string) bool {
				all, _ := m.of("intents_core_rpc_request_seconds_count", chain, host)
				quick, _ := m.of("intents_core_rpc_request_seconds_bucket", chain, host, `le="1"`)
				return all > quick
			},
		},
		{
			name: "429", others: 1, set: func(f *rpctest.Faults) { f.Status = 429 },
			metric: "intents_core_rpc_available", told: unavailable,
		},
		{
			name: "40 blocks behind, no logs above", others: 1, set: func(f *rpctest.Faults) { f.Lag = 40 },
			metric: "intents_core_chain_lagging_total", told: counted("intents_core_chain_lagging_total"),
		},
		{
			name: "a fork of its own", others: 1, fork: true,
			metric: "intents_core_chain_disagreements_total", told: counted("intents_core_chain_disagreements_total"),
		},
		{
			name: "garbage", others: 1, set: func(f *rpctest.Faults) { f.Answer = []byte("<html>bad gateway</html>") },
			metric: `intents_core_rpc_errors_total{reason="malformed"}`, told: failed("malformed"),
		},
		{
			// It is asked for its chain once a minute, and a chain's only other provider waits as long for a second opinion.
			name: "another chain's", others: 2, set: func(f *rpctest.Faults) { f.ChainID = 1 }, always: true,
			metric: "intents_core_rpc_available", told: unavailable,
		},
	}
}

// The first provider of a chain misbehaves while bridges are made: every bridge ends by every step once, no status is ever ahead of the
// chain, and a metric names the provider.
func TestWatcherProviders(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	faults := providerFaults()
	var all []*bridges
	for n, f := range faults {
		f.bridges = newBridges(t, db, 31337+2*uint64(n), 1+f.others)
		all = append(all, f.bridges)
		if f.always {
			f.begin(t)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	adding, enough := context.WithCancel(ctx)
	defer enough()
	added := make(chan error, len(all))
	for _, b := range all {
		working.Go(func() { b.mine(ctx) })
	}
	w := startWatcher(t, db.url, writeRPCFile(t, all...))
	for _, b := range all {
		w.awaitChains(t, b) // what is older than the first look is not read
		working.Go(func() { added <- b.addMany(adding, t, math.MaxInt, 200*time.Millisecond) })
	}
	working.Go(func() { watchStatuses(ctx, t, all) })
	pass(t, time.Second)
	for _, f := range faults {
		f.begin(t)
	}
	pass(t, 5*time.Second)
	w.awaitTelling(t, faults)
	for _, f := range faults {
		f.end()
	}
	pass(t, time.Second)
	enough()
	for range all {
		if err := <-added; err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range all {
		b.mustEnd(t)
	}
	t.Log(providerTable(t, faults))
}

// begin breaks the first provider of both chains.
func (f *providerFault) begin(t *testing.T) {
	t.Helper()
	for n, nodes := range f.bridges.nodes {
		if f.set != nil {
			nodes[0].Set(f.set)
		}
		if f.fork {
			nodes[0].Follow(f.bridges.fork(t, n))
		}
	}
}

// end mends what begin broke.
func (f *providerFault) end() {
	if f.always {
		return
	}
	for n, nodes := range f.bridges.nodes {
		nodes[0].Set(func(f *rpctest.Faults) { *f = rpctest.Faults{} })
		nodes[0].Follow(f.bridges.chains[n])
	}
}

// awaitTelling waits until the metrics tell of the first provider of both chains, for each fault.
func (w *watcher) awaitTelling(t *testing.T, faults []*providerFault) {
	t.Helper()
	for _, f := range faults {
		if f.told == nil {
			continue
		}
		asynctest.Eventually(t, f.metric+" tells of: "+f.name, func() bool {
			m := w.metrics(t)
			for n, id := range f.bridges.ids {
				host := strings.TrimPrefix(f.bridges.nodes[n][0].URL(), "http://")
				if !f.told(m, `"`+id.String()+`"`, `"`+host+`"`) {
					return false
				}
			}
			return true
		})
	}
}

// providerTable is what was measured.
func providerTable(t *testing.T, faults []*providerFault) string {
	t.Helper()
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\nfault of the first provider\tbridges\tslowest to confirmed\tslowest to filled or refunded\tmetric that told")
	for _, f := range faults {
		confirmed, ended := f.bridges.slowest(t)
		fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%s\n", f.name, len(f.bridges.made), millis(confirmed), millis(ended), f.metric)
	}
	_ = out.Flush()
	return text.String()
}
