package listen_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/listen"
)

// counted counts the writes of its connections that are not joined: those are of several buffers, which only a net.TCPConn can write.
type counted struct {
	net.Listener
	writes atomic.Int32
}

type countedConn struct {
	*net.TCPConn
	writes *atomic.Int32
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{c.(*net.TCPConn), &l.writes}, nil
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(p)
}

// client is a connection to a server that answers with as many bytes as the query says: at once, in parts, or in parts that are each flushed.
type client struct {
	net.Conn
	from   *bufio.Reader
	writes *atomic.Int32
}

func newClient(t *testing.T) *client {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := listen.JoinedOf(r.Context())
		length, _ := strconv.Atoi(r.FormValue("length"))
		part, err := strconv.Atoi(r.FormValue("part"))
		if err != nil {
			part = length
			w.Header().Set("Content-Length", strconv.Itoa(length))
		}
		body := bytes.Repeat([]byte("x"), length)
		for len(body) > 0 {
			n := min(part, len(body))
			conn.Joins(true)
			_, _ = w.Write(body[:n])
			conn.Joins(false)
			body = body[n:]
			if r.FormValue("flush") != "" {
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	server.Config.ConnContext = listen.ConnContext
	l := &counted{Listener: server.Listener}
	server.Listener = listen.Join(l)
	server.Start()
	t.Cleanup(server.Close)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{c, bufio.NewReader(c), &l.writes}
}

// readAll asks for a response and wants all of its bytes.
func (c *client) readAll(t *testing.T, query string, length int) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c, "GET /?length=%d%s HTTP/1.1\r\nHost: core\r\n\r\n", length, query); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(c.from, nil)
	if err != nil {
		t.Fatalf("%d bytes%s: %v", length, query, err)
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != int64(length) {
		t.Fatalf("%d bytes%s: %d came, %v", length, query, n, err)
	}
}

// A response is complete whatever its length, above all about those at which net/http's buffer is just full.
func TestJoin_Lengths(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, query := range []string{"", "&part=1000", "&part=1000&flush=1", "&part=4096", "&part=9000&flush=1"} {
		for buffers := range 3 {
			for around := -260; around <= 8; around++ {
				c.readAll(t, query, max(0, buffers*4096+around))
			}
		}
	}
}

// Header and body are one write, also where net/http's buffer is not full until the handler has ended.
func TestJoin_OneWrite(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, length := range []int{4100, 37 << 10, 4100, 300 << 10} {
		c.readAll(t, "", length)
		if alone := c.writes.Load(); alone != 0 {
			t.Fatalf("%d bytes took %d writes of their own", length, alone)
		}
	}
}
