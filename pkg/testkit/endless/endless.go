// Package endless has servers whose answers never end, for tests of the bounds of those who ask them.
package endless

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Answer is how a server answers a connection.
type Answer struct {
	// begin is sent at once, and more again and again at this interval; 0 means as fast as it is read. Empty for silence.
	begin, more string
	every       time.Duration
	// greets means that the server speaks first, as by SMTP.
	greets bool
}

// HTTP are answers to any request, by name.
var HTTP = map[string]Answer{
	"101 and silence":     {begin: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"},
	"silence":             {},
	"a byte a second":     {begin: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n", more: " ", every: time.Second},
	"a body without end":  {begin: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", more: strings.Repeat(" ", 1<<10), every: 10 * time.Millisecond},
	"a header by letters": {begin: "HTTP/1.1 200 OK\r\n", more: "X", every: time.Second},
}

// SMTP are greetings of a mail server, by name.
var SMTP = map[string]Answer{
	"a greeting and silence":  {begin: "220 mail.example ESMTP\r\n", greets: true},
	"silence":                 {greets: true},
	"a byte a second":         {begin: "220", more: "0", every: time.Second, greets: true},
	"a greeting without end":  {more: "220-more\r\n", greets: true},
	"an extension by letters": {begin: "220 mail.example ESMTP\r\n250-", more: "X", every: time.Second, greets: true},
}

// Server answers every connection in the same way.
type Server struct {
	// Address is its host:port on loopback.
	Address string

	requests atomic.Int64
}

// Serve starts a server, which ends with the test.
func Serve(tb testing.TB, answer Answer) *Server {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Address: listener.Addr().String()}
	ended := make(chan struct{})
	var serving sync.WaitGroup
	tb.Cleanup(func() { close(ended); _ = listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				var client sync.WaitGroup
				gone := make(chan struct{})
				client.Go(func() { defer close(gone); s.read(conn, answer, ended) })
				select {
				case <-ended:
				case <-gone:
				}
				_ = conn.Close()
				client.Wait()
			})
		}
	})
	return s
}

// Requests is how many connections have sent a request, or were greeted.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// read answers the first request of a connection and returns once the client has gone.
func (s *Server) read(conn net.Conn, answer Answer, ended <-chan struct{}) {
	if !answer.greets && !readHeader(conn) {
		return
	}
	s.requests.Add(1)
	_, err := io.WriteString(conn, answer.begin)
	if answer.more == "" {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	for err == nil {
		select {
		case <-ended:
			return
		case <-time.After(answer.every):
		}
		_, err = io.WriteString(conn, answer.more)
	}
}

// readHeader reads a request up to its body.
func readHeader(conn net.Conn) bool {
	var header []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(header, []byte("\r\n\r\n")); {
		n, err := conn.Read(buffer)
		if err != nil {
			return false
		}
		header = append(header, buffer[:n]...)
	}
	return true
}

const (
	// deadline is that of a call, and patience is how much longer a busy machine may take.
	deadline, patience = 500 * time.Millisecond, 20 * time.Second
)

// WantEnd calls the servers of some answers, each in a subtest, with a context that has a deadline, and wants each call to return soon after.
func WantEnd(t *testing.T, answers map[string]Answer, call func(ctx context.Context, address string)) {
	t.Helper()
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := Serve(t, answer)
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			returned := make(chan struct{})
			go func() { defer close(returned); call(ctx, server.Address) }()
			select {
			case <-returned:
			case <-time.After(patience):
				t.Error("the call does not end")
			}
			if server.Requests() == 0 {
				t.Error("the server was not asked")
			}
		})
	}
}
