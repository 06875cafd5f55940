package upstream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

// rawCore answers the first request of every connection with these bytes and closes, or goes on with the next.
func rawCore(t *testing.T, listener net.Listener, answer string, closes bool) (url string, hits, connections *atomic.Int64) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	hits, connections = &atomic.Int64{}, &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer conn.Close()
				requests := bufio.NewReader(conn)
				for {
					request, err := http.ReadRequest(requests)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					hits.Add(1)
					fmt.Fprint(conn, answer)
					if closes {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), hits, connections
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestClient_InvalidResponses(t *testing.T) {
	t.Parallel()
	interim := strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9)
	for name, c := range map[string]struct {
		request
		answer string
		want   string
		hits   int64
	}{
		"without a length":                  {read, "HTTP/1.1 200 OK\r\n\r\n[]", "core's response broke off or was invalid", 1},
		"without a length, a list":          {list, "HTTP/1.1 200 OK\r\n\r\n[]", "core's response broke off or was invalid", 1},
		"too long to be held":               {write, "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2000000), "core's response broke off or was invalid: it is over its bound", 1},
		"not HTTP":                          {write, "ERR wrong port\r\n", "core's response broke off or was invalid", 1},
		"not HTTP, a read":                  {read, "ERR wrong port\r\n", "core's response broke off or was invalid", 2},
		"nothing":                           {read, "", "core's response broke off or was invalid", 2},
		"half a head":                       {read, "HTTP/1.1 200 OK\r\nContent-Le", "core's response broke off or was invalid", 2},
		"half a body":                       {read, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[", "core's response broke off or was invalid", 2},
		"half a body, a list":               {list, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[", "core's response broke off or was invalid", 2},
		"half a long body, a list":          {list, "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n[", "broken: unexpected EOF", 1},
		"no last chunk":                     {read, chunked + "1\r\n[\r\n", "core's response broke off or was invalid", 2},
		"no end after the last chunk":       {read, chunked + "1\r\n[\r\n0\r\n", "core's response broke off or was invalid", 2},
		"no last chunk, a list":             {list, chunked + "1\r\n[\r\n", "broken: unexpected EOF", 1},
		"no end after the last, a list":     {list, chunked + "1\r\n[\r\n0\r\n", "broken: unexpected EOF", 1},
		"half a chunk, a list":              {list, chunked + "5\r\n[", "broken: unexpected EOF", 1},
		"a chunk size that is no number":    {list, chunked + "x\r\n[", "broken: invalid byte in chunk length", 1},
		"more than any client waits for":    {read, interim + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "core's response broke off or was invalid", 1},
		"an interim answer before":          {read, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 1},
		"an interim answer before, a list":  {list, "HTTP/1.1 103 Early Hints\r\n\r\n" + chunked + "1\r\nx\r\n0\r\n\r\n", "x", 1},
		"an empty list":                     {list, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 1},
		"no content":                        {read, "HTTP/1.1 204 No Content\r\n\r\n", "", 1},
		"not modified, of the length it is": {list, "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, hits, _ := rawCore(t, listen(t), c.answer, true)
			if got := newClient(t, settings{unprobed: true}, url).answer(c.request); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := hits.Load(); got != c.hits {
				t.Errorf("it was sent %d times, want %d", got, c.hits)
			}
		})
	}
}

// What comes after an answer is nobody's: the connection is not used again.
func TestClient_BytesAfterResponse(t *testing.T) {
	t.Parallel()
	url, hits, connections := rawCore(t, listen(t), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother", false)
	c := newClient(t, settings{unprobed: true}, url)
	for range 3 {
		for _, r := range []request{read, write, list} {
			if got := c.answer(r); got != "x" {
				t.Errorf("answer %q", got)
			}
		}
	}
	if hits.Load() != 9 || connections.Load() != 9 {
		t.Errorf("9 requests arrived %d times on %d connections", hits.Load(), connections.Load())
	}
}

func TestClient_TLS(t *testing.T) {
	t.Parallel()
	core := newCore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "" {
			_, _ = io.WriteString(w, strings.Repeat("x", 64<<10))
			return
		}
		_, _ = io.WriteString(w, "[")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // which says goodbye in TLS's own words
	})
	core.StartTLS()
	authorities := x509.NewCertPool()
	authorities.AddCert(core.Certificate())
	c := newClient(t, settings{options: upstream.Options{TLS: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}, core.URL)
	for range 2 {
		for kind, r := range map[string]request{"read": read, "write": write, "list": list} {
			if got := c.answer(r); len(got) != 64<<10 {
				t.Errorf("%s: %q", kind, got)
			}
		}
	}
	broken := list
	broken.idempotencyKey = "cut"
	if got := c.answer(broken); got != "broken: unexpected EOF" {
		t.Errorf("a list that is cut: %q", got)
	}
	if got := core.hits.Load(); got != 7 {
		t.Errorf("%d requests arrived", got)
	}
	asynctest.Eventually(t, "probes speak TLS too", c.set.All()[0].Up)

	// A core that is not who it should be gets nothing.
	before := core.hits.Load()
	stranger := newClient(t, settings{unprobed: true}, core.URL)
	if _, err := stranger.do(write); !errors.Is(err, upstream.ErrUnreachable) {
		t.Errorf("error: %v", err)
	}
	if core.hits.Load() != before {
		t.Error("a core whose certificate nobody knows was sent a request")
	}

	// Its certificate must be for its name, whatever address the name has.
	here := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	_, port, _ := net.SplitHostPort(core.Listener.Addr().String())
	for host, want := range map[string]bool{"example.com": true, "core.test": false} { // the certificate names the former, and 127.0.0.1
		options := upstream.Options{TLS: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, Resolve: here}
		named := newClient(t, settings{options: options}, "https://"+net.JoinHostPort(host, port))
		asynctest.Eventually(t, "the name is resolved", func() bool { return strings.HasPrefix(named.set.All()[0].Address, "127.0.0.1:") })
		if _, err := named.do(write); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}
