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
	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// startBesideReplica runs one more core on the shared database until the test ends, one that exports what only cores with a
// replica do, and returns its operations listener. The replica is one that it cannot use: the primary itself.
func startBesideReplica(t *testing.T) (operations string) {
	t.Helper()
	operations = startCore(t, "core beside a replica", "CORE_READ_DATABASE_URL="+running.Env().DatabaseURL)
	asynctest.Eventually(t, "the replica is known to be none", func() bool {
		return strings.Contains(get(t, "http://"+operations+"/readyz"), `"degraded":{"replica":"`)
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
	operations = startCore(t, "core that follows a chain", "CORE_RPC_FILE="+file, "CORE_QUOTES_FILE="+quotes, "CORE_SCREENING_FILE="+screening)
	asynctest.Eventually(t, "the chain is read", func() bool {
		return strings.Contains(get(t, "http://"+operations+"/metrics"), "intents_core_chain_read_timestamp_seconds{")
	})
	return operations
}

// startCore runs one more core on the shared database until the test ends and returns its operations listener.
func startCore(t *testing.T, name string, settings ...string) (operations string) {
	t.Helper()
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(t)) }
	operations = address()
	env := running.Env()
	process, _ := startProcess(t, embedded.Command{
		Name: name, Path: filepath.Join(binaries, "core"), Args: []string{"serve"},
		Env: append(append(stack.Environ(),
			"CORE_LISTEN="+address(), "CORE_OPS_LISTEN="+operations, "CORE_GATEWAY_SECRET="+rand.Text()+rand.Text(),
			"CORE_DATABASE_URL="+env.DatabaseURL, "CORE_REDIS_URL="+env.RedisURL), settings...),
	})
	eventually(t, func() error {
		select {
		case <-process.Done():
			t.Fatalf("the %s ended: %v", name, process.Err())
		default:
		}
		_, err := uncheckedClient(t, "http://"+operations).try(http.MethodGet, "/readyz", nil)
		return err
	})
	return operations
}
