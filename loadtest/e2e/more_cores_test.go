package e2e_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/core/rpc/rpctest"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// startBesideReplica runs one more core on the shared database until the test ends, one that exports what only cores with a
// replica do, and returns its operations listener. The replica is one that it cannot use: the primary itself.
func startBesideReplica(t *testing.T) (operations string) {
	t.Helper()
	operations = startCore(t, "CORE_READ_DATABASE_URL="+shared.Stack.Env().DatabaseURL)
	asynctest.Eventually(t, "the replica is known to be none", func() bool {
		return strings.Contains(system.Get(t, "http://"+operations+"/readyz"), `"degraded":{"replica":"`)
	})
	return operations
}

// startFollowing runs one more core on the shared database until the test ends, one that has a provider of quotes and a screening list, and
// follows a chain which no other test uses. One of the chain's three nodes is down.
func startFollowing(t *testing.T) (operations string) {
	t.Helper()
	const number = 1301
	chain := rpctest.NewChain(number)
	chain.MineEmpty(30)
	nodes := []*rpctest.Node{rpctest.Serve(t, chain), rpctest.Serve(t, chain), rpctest.Serve(t, chain)}
	nodes[2].Set(func(f *rpctest.Faults) { f.Status = http.StatusBadGateway })
	urls := make([]string, len(nodes))
	for n, node := range nodes {
		urls[n] = node.URL()
	}
	providers := encode(t, map[string][]string{fmt.Sprintf("eip155:%d", number): urls})
	dir := t.TempDir()
	file, quotes, screening := filepath.Join(dir, "rpc.json"), filepath.Join(dir, "quotes.json"), filepath.Join(dir, "screening.txt")
	for name, text := range map[string]string{file: string(providers), screening: "0x000000000000000000000000000000000000bEEF nobody", quotes: `[{"name":"nobody","kind":"oif","url":"https://quotes.example","environment":"test","deployment":"none","orders":true}]`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	operations = startCore(t, "CORE_RPC_FILE="+file, "CORE_QUOTES_FILE="+quotes, "CORE_SCREENING_FILE="+screening)
	asynctest.Eventually(t, "the chain is read", func() bool {
		return strings.Contains(system.Get(t, "http://"+operations+"/metrics"), "intents_core_chain_read_timestamp_seconds{")
	})
	return operations
}

// startCore runs one more core on the shared database until the test ends and returns its operations listener, which answers.
func startCore(t *testing.T, settings ...string) (operations string) {
	t.Helper()
	core, env := &system.Process{}, shared.Stack.Env()
	shared.PrepareService(t, core, embedded.Command{Path: "core", Args: []string{"serve"}}, func(listen, ops string) []string {
		operations = ops
		return append([]string{
			"CORE_LISTEN=" + listen, "CORE_OPS_LISTEN=" + ops, "CORE_GATEWAY_SECRET=" + rand.Text() + rand.Text(),
			"CORE_DATABASE_URL=" + env.DatabaseURL, "CORE_REDIS_URL=" + env.RedisURL,
		}, settings...)
	})
	core.Start(t)
	core.Await(t, "it answers", func() bool {
		_, err := system.NewClient(t, core.OpsURL, "").Try(http.MethodGet, "/readyz", nil)
		return err == nil
	})
	return operations
}
