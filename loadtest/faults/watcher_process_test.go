package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// watcher is a process of core watch.
type watcher struct {
	opsURL  string
	process *embedded.Process
	log     asynctest.Buffer
}

// startWatcher starts one until the test ends. Its log is printed if the test fails.
func startWatcher(t *testing.T, databaseURL, rpcFile string) *watcher {
	t.Helper()
	address := freeAddress(t)
	w := &watcher{opsURL: "http://" + address}
	process, err := embedded.StartProcess(embedded.Command{
		Name: "core watch", Path: filepath.Join(shared.binaries, "core"), Args: []string{"watch"},
		Env: append(stack.Environ(), "CORE_DATABASE_URL="+databaseURL, "CORE_OPS_LISTEN="+address, "CORE_RPC_FILE="+rpcFile,
			"CORE_GATEWAY_SECRET="+secret, "CORE_CHAIN_TICK=100ms"),
		Output: func(line string) { fmt.Fprintln(&w.log, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.process = process
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the log of core watch %s:\n%s", address, w.log.String())
		}
	})
	return w
}

// logged is how many lines of the log contain all these texts.
func (w *watcher) logged(texts ...string) (lines int) {
	for line := range strings.Lines(w.log.String()) {
		if containsAll(line, texts) {
			lines++
		}
	}
	return lines
}

func (w *watcher) metrics(t *testing.T) metrics {
	t.Helper()
	m, err := readMetrics(t.Context(), w.opsURL)
	if err != nil {
		t.Fatalf("read the metrics of core watch: %v", err)
	}
	return m
}

// awaitChains waits until the process follows both chains.
func (w *watcher) awaitChains(t *testing.T, b *bridges) {
	t.Helper()
	asynctest.Eventually(t, "the process follows both chains", func() bool { return w.follows(t, b) })
}

// follows reports whether the process exports the heads of both chains, which only the one that follows them does.
func (w *watcher) follows(t *testing.T, b *bridges) bool {
	t.Helper()
	return w.known(t, b) == len(b.ids)
}

// known is how many of the chains the process exports the head of.
func (w *watcher) known(t *testing.T, b *bridges) (chains int) {
	t.Helper()
	m, err := readMetrics(t.Context(), w.opsURL)
	if err != nil {
		return 0 // it is starting
	}
	for _, id := range b.ids {
		if _, ok := m.of("intents_core_chain_head_block", id.String()); ok {
			chains++
		}
	}
	return chains
}

// of adds up a metric over the series whose labels contain all these texts; ok is false where there is none.
func (m metrics) of(name string, labels ...string) (total float64, ok bool) {
	for series, value := range m {
		if strings.HasPrefix(series, name+"{") && containsAll(series, labels) {
			total, ok = total+value, true
		}
	}
	return total, ok
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// writeRPCFile writes the file with the providers of all these chains.
func writeRPCFile(t *testing.T, all ...*bridges) (path string) {
	t.Helper()
	providers := map[string][]map[string]any{}
	for _, b := range all {
		for n, id := range b.ids {
			for _, node := range b.nodes[n] {
				providers[id.String()] = append(providers[id.String()], map[string]any{"url": node.URL(), "requestsPerSecond": 10000})
			}
		}
	}
	text, err := json.Marshal(providers)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
