package edge_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// scripts is a listener in memory: its connections have all that their client will ever say before they are accepted.
type scripts struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// serveScripts has the gateway serve such a listener too, until the test ends.
func serveScripts(tb testing.TB, g *gateway) *scripts {
	tb.Helper()
	l := &scripts{conns: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- g.Edge.Serve(l) }()
	tb.Cleanup(func() {
		if err := errors.Join(l.Close(), <-served); err != nil {
			tb.Error(err)
		}
	})
	return l
}

func (l *scripts) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *scripts) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *scripts) Addr() net.Addr { return loopback }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// play has a client say the pieces, each of which is read by itself, and then hang up. It returns all that was said to the
// client.
func (l *scripts) play(tb testing.TB, pieces ...[]byte) []byte {
	tb.Helper()
	s := &script{pieces: pieces, closed: make(chan struct{})}
	l.conns <- s
	select {
	case <-s.closed:
	case <-time.After(20 * time.Second):
		tb.Fatal("the connection is still open")
	}
	return s.said.Bytes()
}

// script is a client that reads whatever comes.
type script struct {
	pieces [][]byte
	heard  bool
	said   bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func (s *script) Read(p []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	if len(s.pieces) == 0 {
		if !s.heard {
			return 0, io.EOF
		}
		return 0, io.ErrUnexpectedEOF // as a connection of the gateway's says
	}
	s.heard = true
	n := copy(p, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) { return s.said.Write(p) }

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (*script) LocalAddr() net.Addr              { return loopback }
func (*script) RemoteAddr() net.Addr             { return loopback }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }
