package edge_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/retrytest"
)

// enter opens a connection and keeps it open; it is surely let in when enter returns.
func (g *gateway) enter(tb testing.TB) *clientConn {
	tb.Helper()
	c := g.dial(tb)
	c.write(tb, request("GET", "/health", "", ""))
	if got := c.read(tb, "GET"); got.Status != 204 {
		tb.Fatalf("%+v", got)
	}
	return c
}

// rejection is the answer to a connection that is not let in.
func rejection(message string) response {
	return refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"`+message+`"}`, "Connection", "close", "Retry-After", "1")
}

func TestConnLimiter_MaxConns(t *testing.T) {
	t.Parallel()
	const most = 3
	g := start(t, coretest.Start(t, nil), func(s *settings) { s.MaxConns = most })
	var inside []*clientConn
	for range most {
		c := g.enter(t)
		defer c.Close()
		inside = append(inside, c)
	}
	want := rejection("Too many connections are open. Try again shortly.")
	for name, raw := range map[string]string{
		"silent":        "",
		"request":       request("GET", "/health", "", ""),
		"large request": "POST /v2/transfers HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat(" ", 100_000),
	} {
		c := g.dial(t)
		defer c.Close()
		c.write(t, raw)
		if diff := cmp.Diff(want, c.read(t, "GET")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !c.closed() {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	if open, refused := g.value(t, "intents_gateway_connections_open"), g.value(t, "intents_gateway_connections_refused_total full"); open != most || refused != 3 {
		t.Errorf("%v open, %v refused", open, refused)
	}
	if limit := g.value(t, "intents_gateway_connections_limit"); limit != most {
		t.Errorf("%v may be open, it says, and %d may", limit, most)
	}
	// What the client still sends does not reset the connection, for a moment that a busy machine may miss.
	asynctest.Eventually(t, "a refused client may finish its request", func() bool {
		c := g.dial(t)
		defer c.Close()
		if got := c.read(t, "GET"); got.Status != 503 || !c.closed() {
			t.Fatalf("%+v", got)
		}
		for range 3 {
			if _, err := c.Write([]byte(" ")); err != nil {
				return false
			}
		}
		return true
	})
	// Those inside are served on, and the next comes in for one that leaves.
	inside[0].write(t, request("GET", "/health", "", ""))
	if got := inside[0].read(t, "GET"); got.Status != 204 {
		t.Errorf("inside: %+v", got)
	}
	_ = inside[1].Close()
	asynctest.Eventually(t, "there is room again", func() bool { return g.send(t, request("GET", "/health", "", "")).Status == 204 })
}

// A crowd that is turned away and stays has its answer all the same, and holds nobody up.
func TestConnLimiter_RejectsBurst(t *testing.T) {
	t.Parallel()
	const crowd = 400 // more than have their refusal read to them
	g := start(t, coretest.Start(t, nil), func(s *settings) { s.MaxConns = 1 })
	defer g.enter(t).Close()
	var turned []*clientConn
	for range crowd {
		c := g.dial(t)
		defer c.Close()
		turned = append(turned, c)
	}
	for _, c := range turned {
		if got := c.read(t, "GET"); got.Status != 503 {
			t.Fatalf("%+v", got)
		}
	}
	if refused := g.value(t, "intents_gateway_connections_refused_total full"); refused != crowd {
		t.Errorf("%v refused", refused)
	}
}

func TestConnLimiter_MaxConnsPerIP(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil), func(s *settings) { s.MaxConnsPerIP = 2 })
	for range 2 {
		defer g.enter(t).Close()
	}
	retrytest.HasJitter(t, func() string { return g.retryAfter(t) })
	refusedBefore := g.value(t, "intents_gateway_connections_refused_total address")
	want := rejection("Too many connections are open from your address. Use fewer, and use them again.")
	if diff := cmp.Diff(want, g.send(t, request("GET", "/health", "", ""))); diff != "" {
		t.Error(diff)
	}
	if refused := g.value(t, "intents_gateway_connections_refused_total address") - refusedBefore; refused != 1 {
		t.Errorf("%v refused", refused)
	}
	neighbour := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other, err := neighbour.DialContext(t.Context(), "tcp", g.address)
	if err != nil {
		if runtime.GOOS == "linux" || os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("this system has but one loopback address:", err)
	}
	c := &clientConn{Conn: other, reader: bufio.NewReader(other)}
	defer c.Close()
	c.write(t, request("GET", "/health", "", ""))
	if got := c.read(t, "GET"); got.Status != 204 {
		t.Errorf("another address: %+v", got)
	}
}

// stingy is a listener of a process that is at times out of file descriptors.
type stingy struct {
	net.Listener
	lacks atomic.Int64
}

func (s *stingy) Accept() (net.Conn, error) {
	if s.lacks.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.Listener.Accept()
}

// A process that has no file descriptor left serves on when it has some again.
func TestConnLimiter_FileDescriptorsExhausted(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stingy{Listener: listener}
	s.lacks.Store(5)
	ended := make(chan error, 1)
	go func() { ended <- g.Edge.Serve(s) }()
	second := *g
	second.address = listener.Addr().String()
	_ = second.enter(t).Close()
	if exhausted := g.value(t, "intents_gateway_connections_refused_total exhausted"); exhausted != 5 {
		t.Errorf("counted %v times", exhausted)
	}
	drain, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := errors.Join(g.Edge.Drain(drain), <-ended); err != nil {
		t.Error(err)
	}
}
