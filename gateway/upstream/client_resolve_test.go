package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

// poolsOfCore is how many pools of each core are measured.
const poolsOfCore = 4

// Cores come and go under a name while requests pass, and none of these fails. Each is sent by the name, whatever address the core has: a proxy
// before it may go by that.
func TestClient_DNSChanges(t *testing.T) {
	t.Parallel()
	startAt := func(ip string, port int, answer string) (*core, int) {
		c := newCore(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.Host, "core.test:") {
				t.Errorf("a request for %s", r.Host)
			}
			_, _ = io.WriteString(w, answer)
		})
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("%s:%d", ip, port))
		if err != nil {
			t.Skip("this system has one loopback address only:", err)
		}
		_ = c.Listener.Close()
		c.Listener = listener
		c.Start()
		return c, listener.Addr().(*net.TCPAddr).Port
	}
	var addresses atomic.Pointer[[]netip.Addr]
	lead := func(to ...string) {
		var all []netip.Addr
		for _, ip := range to {
			all = append(all, netip.MustParseAddr(ip))
		}
		addresses.Store(&all)
	}
	resolve := func(context.Context, string) ([]netip.Addr, error) { return *addresses.Load(), nil }

	first, port := startAt("127.0.0.2", 0, "first")
	lead("127.0.0.2")
	c := newClient(t, settings{options: upstream.Options{Resolve: resolve}}, fmt.Sprintf("http://core.test:%d", port))
	asynctest.Eventually(t, "the core is found", func() bool { return c.answer(read) == "first" })

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, kind := range []request{read, write, list, write} {
		clients.Go(func() {
			for ctx.Err() == nil {
				if got := c.answer(kind); got != "first" && got != "second" {
					t.Errorf("%s: %s", kind.method, got)
					return
				}
			}
		})
	}
	second, _ := startAt("127.0.0.3", port, "second")
	lead("127.0.0.2", "127.0.0.3")
	asynctest.Eventually(t, "the second core is asked too", func() bool { return second.hits.Load() > 100 })
	lead("127.0.0.3")
	asynctest.Eventually(t, "the first core has left", func() bool { return len(c.set.All()) == 1 })
	before := first.hits.Load()
	after := second.hits.Load()
	asynctest.Eventually(t, "the second core is asked alone", func() bool { return second.hits.Load() > after+100 })
	stop()
	clients.Wait()
	// A request that chose the first core before it left may still have arrived there.
	if late := first.hits.Load() - before; late > 4 {
		t.Errorf("%d requests went to the core that had left", late)
	}
	if pools := testutil.CollectAndCount(c.registry, "intents_gateway_pool_connections_limit"); pools != poolsOfCore {
		t.Errorf("%d pools are measured", pools)
	}
}
