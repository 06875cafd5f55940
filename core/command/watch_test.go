package command_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/testkit/asynctest"
)

var sepolia = caip.EIP155Chain(11155111)

// rpcFile writes a file with these providers of Sepolia.
func rpcFile(t *testing.T, urls ...string) (setting string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"%s": ["%s"]}`, sepolia, strings.Join(urls, `","`)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "CORE_RPC_FILE=" + path
}

// newSepolia is a chain of a hundred blocks, the last of them new.
func newSepolia() *rpctest.Chain {
	chain := rpctest.NewChain(11155111)
	chain.SetTime(time.Now().Add(-100 * time.Second))
	chain.SetPeriod(time.Second)
	chain.MineEmpty(99)
	return chain
}

func head(t *testing.T, store *rooms.Rooms) uint64 {
	t.Helper()
	progress, err := store.Watched.Progress(t.Context(), sepolia)
	if err != nil {
		t.Fatal(err)
	}
	return progress.Head
}

// Both commands read the chain, and give it back when they end, so that the next reads it at once.
func TestWatch_LeaseReleased(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	pgtest.LoadRegistry(t, store)
	chain := newSepolia()
	file := rpcFile(t, rpctest.Serve(t, chain).URL())
	for _, command := range []string{"watch", "serve"} {
		chain.MineEmpty(1)
		p := start(t, command, url, file, "CORE_CHAIN_TICK=100ms")
		asynctest.Eventually(t, command+" reads the chain", func() bool { return head(t, store) == chain.Head().Number })
		if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.listen); (err == nil) != (command == "serve") {
			t.Errorf("core %s on the public address: %v", command, err)
		} else if err == nil {
			_ = connection.Close()
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-p.ended
		if p.err != nil || !strings.Contains(p.out.String(), `"msg":"stopped"`) {
			t.Errorf("core %s ended: %v\n%s", command, p.err, p.out)
		}
		if held := lookUp[bool](t, store, "SELECT lease_until > clock_timestamp() FROM watched_chains"); held {
			t.Errorf("core %s kept its lease", command)
		}
	}
}

// A core that only serves leaves chains to others.
func TestServe_WithoutWatching(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	pgtest.LoadRegistry(t, store)
	node := rpctest.Serve(t, newSepolia())
	serve(t, url, rpcFile(t, node.URL()), "CORE_WATCH=false")
	start(t, "watch", url, rpcFile(t, rpctest.Serve(t, newSepolia()).URL()))
	asynctest.Eventually(t, "the watcher reads the chain", func() bool { return head(t, store) > 0 })
	if asked := node.Requests(); asked != 0 {
		t.Errorf("the core that serves asked its provider %d times", asked)
	}
}

func TestWatch_Settings(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	got := core(t, "", append(on(url), "CORE_GATEWAY_SECRET="+gatewaySecret), "watch")
	if want := "core: CORE_RPC_FILE is required: it names the providers of the chains to watch\n"; got.Code != 1 || got.ErrOut != want {
		t.Errorf("without a file: %+v", got)
	}
	got = core(t, "", append(on(url), "CORE_GATEWAY_SECRET="+gatewaySecret, "CORE_RPC_FILE=/nonexistent/rpc.json"), "watch")
	if got.Code != 1 || !strings.HasPrefix(got.ErrOut, "core: CORE_RPC_FILE: read the RPC file: open /nonexistent/rpc.json") {
		t.Errorf("with a file that is not there: %+v", got)
	}
	p := serve(t, url, rpcFile(t, "https://user:hunter2@rpc.example/v2/hunter2"))
	if out := p.out.String(); strings.Contains(out, "hunter2") ||
		!strings.Contains(out, "chain of CORE_RPC_FILE is not registered and not watched; import it with core chains import") {
		t.Errorf("a chain that is not registered:\n%s", out)
	}
}
