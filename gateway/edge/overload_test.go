package edge_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"intents.internal/gateway/conn"
	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// A crowd of idle and slow connections keeps nobody from being served, ends when it should, and leaves nothing behind.
func TestOverload_IdleAndSlowClients(t *testing.T) { //nolint:paralleltest // it counts this process's goroutines
	// Both ends of a connection are files of this process.
	files := conn.OpenFileLimit() - 500
	idle, slow := min(2000, files*10/24), min(200, files/24)
	core := coretest.Start(t, nil)
	g := start(t, core, func(s *settings) {
		s.ReadTimeout, s.IdleTimeout = 2*time.Second, time.Minute
	})
	honest := g.enter(t)
	defer honest.Close()
	key := ""
	ask := func(n int) time.Duration {
		t.Helper()
		if n%40 == 0 { // of the 50 that a key has
			key = apiKey(core.AddKey(network.Test))
		}
		began := time.Now()
		honest.write(t, request("GET", "/v2/tokens", key, ""))
		if got := honest.read(t, "GET"); got.Status != 200 {
			t.Fatalf("honest request %d: %+v", n, got)
		}
		return time.Since(began)
	}
	const asked = 400
	quiet := tail(asked, ask)
	goroutines := runtime.NumGoroutine()

	var crowd []*clientConn
	for range idle {
		crowd = append(crowd, g.enter(t))
	}
	began := time.Now()
	var drippers []*clientConn
	for n := range slow {
		c := g.dial(t)
		if n%2 == 0 {
			c.write(t, "GET /v2/tokens HTTP/1.1\r\nHost: a\r\nX-Long: ")
		} else {
			c.write(t, "POST /v2/transfers HTTP/1.1\r\nHost: a\r\n"+jsonType+key+"Content-Length: 1000\r\n\r\n")
		}
		go drip(c, strings.Repeat("a", 1000))
		drippers = append(drippers, c)
	}
	meanwhile := tail(asked, ask)
	t.Logf("p99 of honest requests: %s, beside %d idle and %d slow connections %s", quiet, idle, slow, meanwhile)
	if meanwhile > quiet+slowAllowance {
		t.Error("the crowd holds honest requests up")
	}
	if open := g.value(t, "intents_gateway_connections_open"); open < float64(idle) {
		t.Errorf("%v connections are open", open)
	}
	for _, c := range drippers {
		if got := c.read(t, "GET"); got.Status != 408 {
			t.Fatalf("a slow client: %+v", got)
		}
	}
	within(t, "the last of the slow clients", time.Since(began), 2*time.Second)
	for _, c := range append(crowd, drippers...) {
		_ = c.Close()
	}
	asynctest.Eventually(t, "the crowd has left", func() bool { return g.value(t, "intents_gateway_connections_open") == 1 })
	asynctest.Eventually(t, "its goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines+10 })
}

// tail is the time that 99 of 100 calls did not exceed.
func tail(calls int, call func(n int) time.Duration) time.Duration {
	times := make([]time.Duration, calls)
	for n := range times {
		times[n] = call(n)
	}
	slices.Sort(times)
	return times[calls*99/100]
}
