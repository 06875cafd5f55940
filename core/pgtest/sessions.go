package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A backend costs Postgres 30 ms and more of CPU for its fork, its caches of the catalog and its exit, and a test sends few statements. So the
// backend of a closed connection stays for the next one with the same startup message, after PgBouncer's server_reset_query.

const (
	// maxIdleSessions is less than max_connections of a private server, which is 200.
	maxIdleSessions = 64
	// resetTimeout bounds a reset. A backend that does not answer is busy and is closed.
	resetTimeout = time.Second
	// livenessTimeout is how long a session is listened to before it is used again: one whose backend has ended says so at once.
	livenessTimeout = time.Millisecond
)

// sessionCache has the idle sessions on one server.
type sessionCache struct {
	network, address string

	mu   sync.Mutex
	idle []*session // the one that has waited longest is first
}

// session is a connection to a backend.
type session struct {
	net.Conn
	startup  string
	greeting []byte // the answer to the startup message
}

// dial is a pgconn.DialFunc. A session is chosen by the startup message, which the connection has yet to write.
func (c *sessionCache) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != c.network || address != c.address {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &sessionConn{cache: c, started: make(chan struct{})}, nil
}

// take returns an idle session with this startup message, nil if there is none.
func (c *sessionCache) take(startup string) *session {
	for {
		c.mu.Lock()
		i := slices.IndexFunc(c.idle, func(s *session) bool { return s.startup == startup })
		if i < 0 {
			c.mu.Unlock()
			return nil
		}
		s := c.idle[i]
		c.idle = slices.Delete(c.idle, i, i+1)
		c.mu.Unlock()
		if s.alive() {
			return s
		}
		_ = s.Close()
	}
}

// put keeps a session that can be reset, in place of the oldest one if there are too many.
func (c *sessionCache) put(s *session) error {
	if err := s.reset(); err != nil {
		return s.Close()
	}
	c.mu.Lock()
	c.idle = append(c.idle, s)
	var oldest *session
	if len(c.idle) > maxIdleSessions {
		oldest = c.idle[0]
		c.idle = slices.Delete(c.idle, 0, 1)
	}
	c.mu.Unlock()
	if oldest != nil {
		return oldest.Close()
	}
	return nil
}

// close ends the idle sessions.
func (c *sessionCache) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.idle {
		err = errors.Join(err, s.Close())
	}
	c.idle = nil
	return err
}

func (s *session) alive() bool {
	_ = s.SetReadDeadline(time.Now().Add(livenessTimeout))
	_, err := s.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && s.SetReadDeadline(time.Time{}) == nil
}

var errNotIdle = errors.New("the backend is not idle")

// reset leaves nothing of what the connection did but the backend's caches. Answers to earlier statements may come first.
func (s *session) reset() error {
	if err := s.SetDeadline(time.Now().Add(resetTimeout)); err != nil {
		return err
	}
	frontend := pgproto3.NewFrontend(s, s)
	frontend.Send(&pgproto3.Query{String: "DISCARD ALL"})
	if err := frontend.Flush(); err != nil {
		return err
	}
	for discarded := false; ; {
		message, err := frontend.Receive()
		if err != nil {
			return err
		}
		switch message := message.(type) {
		case *pgproto3.CommandComplete:
			discarded = string(message.CommandTag) == "DISCARD ALL"
		case *pgproto3.ErrorResponse:
			return errNotIdle
		case *pgproto3.ReadyForQuery:
			if discarded {
				return s.SetDeadline(time.Time{})
			}
		}
	}
}

var errNoGreeting = errors.New("the server refuses the connection or asks for a password")

// receiveGreeting receives the answer to the startup message, which is the same for each connection on the session.
func (s *session) receiveGreeting() error {
	var answer bytes.Buffer
	defer func() { s.greeting = answer.Bytes() }()
	frontend := pgproto3.NewFrontend(io.TeeReader(s, &answer), s)
	for {
		message, err := frontend.Receive()
		if err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.AuthenticationOk, *pgproto3.ParameterStatus, *pgproto3.BackendKeyData:
		case *pgproto3.ReadyForQuery:
			return nil
		default:
			return errNoGreeting
		}
	}
}

// sessionConn is a connection on a session, which its startup message takes and its Terminate message gives back.
type sessionConn struct {
	*session // nil before the first message

	cache      *sessionCache
	unread     []byte // of the greeting
	terminated atomic.Bool
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
		c.terminated.Store(true)
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

// Read implements net.Conn. The driver may read in the background before its first message is written. After Terminate it reads until the
// server closes the connection.
func (c *sessionConn) Read(p []byte) (int, error) {
	<-c.started
	if c.session == nil || c.terminated.Load() {
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
	case c.terminated.Load() && c.startup != "":
		return c.cache.put(c.session)
	}
	return c.session.Close()
}
