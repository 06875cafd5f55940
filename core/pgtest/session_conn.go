package pgtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// sessionConn is a connection on a session, which its startup message takes and its Terminate message gives back.
type sessionConn struct {
	*session // nil before the first message

	cache      *sessionCache
	unread     []byte // of the greeting
	terminated bool
	closed     atomic.Bool
	started    chan struct{} // closed once the first message is answered or has failed

	mu       sync.Mutex // of the deadline, which a canceled context sets at any time
	deadline time.Time
}

// Write implements net.Conn. The driver writes each of the messages in question alone.
func (c *sessionConn) Write(p []byte) (int, error) {
	if c.session == nil {
		return len(p), c.start(p)
	}
	if slices.Equal(p, terminate) {
		c.terminated = true
		return len(p), nil
	}
	return c.session.Write(p)
}

var terminate, _ = new(pgproto3.Terminate).Encode(nil)

// start takes a session or makes one. A first message that is none of startup asks for TLS or cancels a statement.
func (c *sessionConn) start(first []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(c.started)
	var startup pgproto3.StartupMessage
	key := ""
	if startup.Decode(first[4:]) == nil {
		key = fmt.Sprint(startup.Parameters) // sorted
		c.session = c.cache.take(key)
	}
	if c.session == nil {
		made, err := (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), c.cache.network, c.cache.address)
		if err != nil {
			return err
		}
		c.session = &session{Conn: made}
		if _, err := made.Write(first); err != nil {
			return err
		}
		if key != "" && c.receiveGreeting() == nil {
			c.startup = key
		}
	}
	c.unread = c.greeting
	return c.session.SetDeadline(c.deadline)
}

// Read implements net.Conn. The driver may read in the background before its first message is written.
func (c *sessionConn) Read(p []byte) (int, error) {
	<-c.started
	if c.session == nil {
		return 0, io.EOF
	}
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	return c.session.Read(p)
}

// SetDeadline implements net.Conn.
func (c *sessionConn) SetDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline = deadline; c.session == nil {
		return nil
	}
	return c.session.SetDeadline(deadline)
}

// Close implements net.Conn. The driver closes twice.
func (c *sessionConn) Close() error {
	switch {
	case c.closed.Swap(true), c.session == nil:
		return nil
	case c.terminated && c.startup != "":
		return c.cache.put(c.session)
	}
	return c.session.Close()
}
