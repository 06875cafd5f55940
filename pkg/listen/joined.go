package listen

import (
	"context"
	"net"
)

// Joined is a connection of an http.Server that writes the header and the body of a response with one system call. net/http has a buffer
// of 4 KiB: of a longer response it writes as much first, which wakes the client, and then the rest.
//
// Only the goroutine that serves the connection may call Joins and Write.
type Joined struct {
	net.Conn
	joins bool
	// held waits for the next write, in buffer.
	held, buffer []byte
}

// Join returns a listener of TCP whose connections are Joined.
func Join(l net.Listener) net.Listener { return joining{l} }

type joining struct{ net.Listener }

// Accept is net.Listener's.
func (l joining) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Joined{Conn: c}, nil
}

type connKey struct{}

// ConnContext is an http.Server's, for JoinedOf.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// JoinedOf returns the connection of a request's context, nil if it is not Joined.
func JoinedOf(ctx context.Context) *Joined {
	c, _ := ctx.Value(connKey{}).(*Joined)
	return c
}

// Joins sets whether a write waits for the next one. It must be set only while a handler writes a body: then net/http writes because its
// buffer is full and it has more. A nil Joined ignores it.
func (c *Joined) Joins(joins bool) {
	if c != nil {
		c.joins = joins
	}
}

// Write is net.Conn's. What waits for the next write counts as written, and its error is the next write's.
func (c *Joined) Write(p []byte) (int, error) {
	switch {
	case len(c.held) > 0:
		buffers := net.Buffers{c.held, p}
		held := int64(len(c.held))
		c.held = nil
		n, err := buffers.WriteTo(c.Conn)
		return int(max(0, n-held)), err
	case c.joins:
		c.buffer = append(c.buffer[:0], p...) // net/http overwrites it
		c.held = c.buffer
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// CloseWrite lets net/http end a connection so that the client can read the response (RFC 9112 section 9.6).
func (c *Joined) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}
