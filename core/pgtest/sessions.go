package pgtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
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
