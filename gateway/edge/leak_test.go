package edge_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

var redisURL string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	r, err := embedded.StartRedis(context.Background(), embedded.RedisConfig{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	redisURL = r.URL
	code := m.Run()
	if err := r.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := awaitQuiet(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines outlive the tests:", err)
		return 1
	}
	return code
}

// awaitQuiet returns an error if goroutines are left when all tests have ended. What was told to end may need a moment.
func awaitQuiet() error {
	// fasthttp does not wait for these. Each does nothing but sleep, and two of them end when they next wake up.
	theirs := []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	}
	var err error
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		if err = goleak.Find(theirs...); err == nil {
			return nil
		}
	}
	return err
}

// uses counts the gateways before each core.
var uses = useCounts{count: map[*coretest.Core]int{}}

type useCounts struct {
	mu    sync.Mutex
	count map[*coretest.Core]int
}

func (u *useCounts) begin(core *coretest.Core) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count[core]++
}

// end reports whether it was the last.
func (u *useCounts) end(core *coretest.Core) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count[core]--
	if u.count[core] > 0 {
		return false
	}
	delete(u.count, core)
	return true
}

// leftNothing fails the test if a gateway that was stopped has connections left, of clients or to core.
func leftNothing(tb testing.TB, g *gateway, core *coretest.Core) {
	tb.Helper()
	asynctest.Eventually(tb, "the clients' connections are closed", func() bool { return g.Edge.OpenConnections() == 0 })
	if uses.end(core) {
		core.AwaitNobody(tb)
	}
}
