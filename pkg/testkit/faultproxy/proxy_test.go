package faultproxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/faultproxy"
)

// startEcho starts a server that answers each line with itself, until the test ends.
func startEcho(t *testing.T) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// client is a connection through the proxy.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) (*client, error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, bufio.NewReader(conn)}, nil
}

// ask sends a line and returns how it is answered within a time.
func (c *client) ask(line string, within time.Duration) string {
	_, err := fmt.Fprintln(c, line)
	if err == nil {
		_ = c.SetReadDeadline(time.Now().Add(within))
		var answer string
		if answer, err = c.lines.ReadString('\n'); err == nil {
			return strings.TrimSpace(answer)
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "silence"
	}
	return "closed"
}

// Each fault does to a connection that exists, and to a new one, what it says, and Heal ends it.
func TestProxy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault                func(*faultproxy.Proxy)
		existing, fresh, now string // how the existing connection, a new one, and the existing one after Heal are answered
	}{
		"refuse":          {(*faultproxy.Proxy).Refuse, "closed", "refused", "closed"},
		"shut":            {(*faultproxy.Proxy).Shut, "closed", "closed", "closed"},
		"cut":             {(*faultproxy.Proxy).Cut, "closed", "fault", "closed"},
		"reset":           {(*faultproxy.Proxy).Reset, "closed", "closed", "closed"},
		"reset responses": {(*faultproxy.Proxy).ResetResponses, "closed", "closed", "closed"},
		"drop responses":  {(*faultproxy.Proxy).DropResponses, "silence", "silence", "closed"},
		"black hole":      {(*faultproxy.Proxy).BlackHole, "silence", "silence", "fault"},
		"half open":       {(*faultproxy.Proxy).HalfOpen, "silence", "fault", "closed"},
		"delay responses": {func(p *faultproxy.Proxy) { p.DelayResponses(time.Hour) }, "silence", "silence", "fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := faultproxy.Start(t, startEcho(t))
			existing, err := dial(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := existing.ask("before", time.Minute); got != "before" {
				t.Fatalf("before the fault: %s", got)
			}
			within := time.Minute
			if test.existing == "silence" || test.fresh == "silence" {
				within = 100 * time.Millisecond
			}
			test.fault(p)
			if got := existing.ask("fault", within); got != test.existing {
				t.Errorf("the existing connection: %s, want %s", got, test.existing)
			}
			got := "refused"
			if fresh, err := dial(t, p); err == nil {
				got = fresh.ask("fault", within)
			} else if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Error(err)
			}
			if got != test.fresh {
				t.Errorf("a new connection: %s, want %s", got, test.fresh)
			}
			p.Heal()
			if got := existing.ask("after", time.Minute); got != test.now {
				t.Errorf("the existing connection after Heal: %s, want %s", got, test.now)
			}
			again, err := dial(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := again.ask("after", time.Minute); got != "after" {
				t.Errorf("a connection after Heal: %s", got)
			}
		})
	}
}

func TestProxy_LoseReply(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, startEcho(t))
	p.LoseReply(func(request []byte) bool { return bytes.Contains(request, []byte("lost")) })
	c, err := dial(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one", "lost"} {
		if got, want := c.ask(line, time.Minute), map[string]string{"one": "one", "lost": "closed"}[line]; got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	if p.Lost() != 1 || p.Passed() != 1 {
		t.Errorf("%d replies lost of %d connections", p.Lost(), p.Passed())
	}
}
