package topologytest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Cutter is a proxy to a Redis that can drop replies: the command was executed, and the client does not get the result.
type Cutter struct {
	// Port is the proxy's port on 127.0.0.1.
	Port int

	target string
	armed  atomic.Bool
	cut    atomic.Int64
	conns  sync.WaitGroup
}

// StartCutter starts a proxy in front of the node, until the test ends.
func StartCutter(tb testing.TB, target *Node) *Cutter {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	c := &Cutter{Port: address.Port, target: target.Address}
	ctx, cancel := context.WithCancel(context.Background())
	c.conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.conns.Go(func() { c.serve(ctx, client) })
		}
	})
	tb.Cleanup(func() {
		cancel()
		_ = listener.Close()
		c.conns.Wait()
	})
	return c
}

// CutNextReply drops the reply to the next script and closes its connection.
func (c *Cutter) CutNextReply() { c.armed.Store(true) }

// Cut returns the number of dropped replies.
func (c *Cutter) Cut() int { return int(c.cut.Load()) }

func (c *Cutter) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })
	defer stop()
	var lose atomic.Bool
	c.conns.Go(func() {
		defer server.Close()
		forward(server, client, func(asked []byte) bool {
			if bytes.Contains(bytes.ToLower(asked), []byte("\r\neval")) && c.armed.CompareAndSwap(true, false) {
				lose.Store(true)
			}
			return true
		})
	})
	forward(client, server, func([]byte) bool {
		if lose.Load() {
			c.cut.Add(1)
			return false
		}
		return true
	})
}

// forward copies bytes while may allows it.
func forward(to io.Writer, from io.Reader, may func([]byte) bool) {
	passed := make([]byte, 64<<10)
	for {
		n, err := from.Read(passed)
		if err != nil || !may(passed[:n]) {
			return
		}
		if _, err := to.Write(passed[:n]); err != nil {
			return
		}
	}
}
