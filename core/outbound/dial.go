package outbound

import (
	"context"
	"errors"
	"net"
)

// maxRead bounds the bytes that are read from a connection of Dial. The replies of a mail server to one message are below 10 KiB.
const maxRead = 1 << 20

var errReadTooMuch = errors.New("the server sends more than is read")

// newDialer dials these networks, nil for all.
func newDialer(networks *Networks, resolver *net.Resolver) *net.Dialer {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: resolver}
	if networks != nil {
		dialer.Control = networks.control
	}
	return dialer
}

// Dial opens a connection for a protocol other than HTTP, to any address. It is closed when ctx ends, whatever is read or written then
// and whatever deadlines it has, and no more than 1 MiB is read from it.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := newDialer(nil, nil).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &endingConn{Conn: conn, left: maxRead, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// endingConn is closed when a context ends.
type endingConn struct {
	net.Conn

	left int
	stop func() bool
}

// Read implements net.Conn. Its callers read one after the other.
func (c *endingConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, errReadTooMuch
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// Close implements net.Conn.
func (c *endingConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
